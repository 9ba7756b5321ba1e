/** The outcome of a tool's call, before it is formatted as a tool result. */
import type { CallOutcome } from '../client/action.ts';

export type Written = {
  outcome: CallOutcome;
  /** For a write: the key for `Repeats.end`. */
  key?: string;
  /** An identical call was begun before, with unknown outcome (unless this outcome is its outcome). */
  joins: boolean;
};
