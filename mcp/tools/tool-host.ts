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
  /** Writes in progress by hash, where one process handles all calls of an agent: a concurrent identical write joins the one in progress. */
  underway?: Map<string, Promise<Written>>;
  permissions: PermissionWatch;
  personKey: PersonKey;
  /** Returns the caller that the server is configured for, if there is one. Throws CallerProblem. */
  configured?: (() => Caller) | undefined;
  /** Logs an unexpected error. Returns what a client may read of it. */
  failed: (error: unknown) => BrokerError;
  /** How long a request is kept open for a decision, in milliseconds: MAX_WAIT_MS, or less for clients with a shorter timeout. */
  waitMs: number;
};
