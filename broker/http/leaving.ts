/** When whoever is answered has left. */
import type { ServerResponse } from 'node:http';

/** Calls `then` when the reader has left or the answer is over; at once, when that was before. */
export function leaving(response: ServerResponse, then: () => void): void {
  if (response.destroyed || response.closed) then();
  else response.once('close', then);
}
