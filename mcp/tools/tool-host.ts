/** Dependencies of the tools of one agent. */
import type { Caller } from '../client/action.ts';
import type { BrokerError } from '../client/broker-error.ts';
import type { PermissionWatch } from './permission-watch.ts';
import type { PersonKey } from './person-key.ts';
import type { Repeats } from './repeats.ts';
import type { ToolClient } from './tool-client.ts';
import type { Written } from './written.ts';

export type ToolHost = {
  client: ToolClient;
  repeats: Repeats;
  /** Writes in progress by hash, if one process has all of an agent's: a concurrent identical one joins. */
  underway?: Map<string, Promise<Written>>;
  permissions: PermissionWatch;
  personKey: PersonKey;
  /** Whom it calls for, if it is set up for one person. Throws CallerProblem. */
  configured?: (() => Caller) | undefined;
  /** Logs an error that nobody foresaw. Returns what a client may read of it. */
  failed: (error: unknown) => BrokerError;
  /** How long a request is kept open for a decision, in milliseconds: MOST_WAIT_MS, or less for clients with a shorter timeout. */
  waitMs: number;
};
