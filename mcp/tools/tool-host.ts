/** What the tools of one agent work with. */
import type { PermissionWatch } from './permission-watch.ts';
import type { Repeats } from './repeats.ts';
import type { ToolClient } from './tool-client.ts';
import type { Written } from './write-once.ts';

export type ToolHost = {
  client: ToolClient;
  repeats: Repeats;
  /** Writes on their way, by hash, where one process has all of an agent's: the identical one at the same time is that one. */
  underway?: Map<string, Promise<Written>>;
  permissions: PermissionWatch;
  /** How long a request is kept open for a decision, in milliseconds: MOST_WAIT_MS, or less where a client gives up earlier. */
  waitMs: number;
};
