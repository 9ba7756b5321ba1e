/** A pause that can be aborted. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits for `ms` milliseconds. Throws the signal's reason when it is aborted, where Node's own timer throws an error of its own. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, { ...(signal && { signal }) });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
}
