/** A call that may have an effect: submitted under one Idempotency-Key for as long as nobody has its answer. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Action, CallOutcome } from '../client/action.ts';
import type { Begun, Repeats } from './repeats.ts';
import type { ToolHost } from './tool-host.ts';

export type Written = {
  outcome: CallOutcome;
  /** Of a write: what `Repeats.end` takes. */
  key?: string;
  /** An identical call was begun before, and what became of it is not known; unless this outcome is what became of it. */
  joins: boolean;
};

const IN_PROGRESS = 'idempotency_in_progress';
const USUAL_PAUSE_SECONDS = 2;
const LEAST_PAUSE_MS = 500;

/** What the broker keeps for a key, beside answers and held calls: the same comes again for as long as the key is good. */
const LAST_WORDS = new Set(['idempotency_outcome_unknown', 'upstream_response_blocked', 'upstream_unreachable']);

/** Whether the outcome is that of the recorded call itself. A refusal is of this moment, and says nothing of an earlier try. */
export const isFinal = (outcome: CallOutcome): boolean =>
  outcome.kind === 'answered' ||
  (outcome.kind === 'failed' && outcome.error.mayHaveActed && LAST_WORDS.has(outcome.error.code));

/**
 * Submits a write, and waits until `endsAt` (a moment in milliseconds) while the identical one is on its way from elsewhere:
 * its answer is this one's, too. It is not given up on when the client cancels: it may be on its way already, and its outcome
 * has to be known.
 */
export async function writeOnce(
  { client, repeats }: Pick<ToolHost, 'client' | 'repeats'>,
  action: Action,
  { hash, endsAt }: { hash: string; endsAt: number },
): Promise<Written> {
  const begun = await repeats.begin(hash, action.reason);
  const { key, reason } = begun;
  const { reason: _, ...rest } = action;
  const submit = () => client.call({ ...rest, ...(reason !== undefined && { reason }) }, { idempotencyKey: key });
  let outcome = await submit();
  let joins = !begun.isNew;
  while (outcome.kind === 'failed' && outcome.error.code === IN_PROGRESS) {
    joins = true;
    const leftMs = endsAt - Date.now();
    if (leftMs <= 0) break;
    const { retryAfterSeconds = USUAL_PAUSE_SECONDS } = outcome.error;
    await sleep(Math.min(Math.max(retryAfterSeconds * 1000, LEAST_PAUSE_MS), leftMs));
    outcome = await submit();
  }
  if (outcome.kind === 'held') await repeats.held(hash, key, outcome.approvalId);
  // Nobody else has submitted it, and this was refused or never sent: nothing is left that could be made twice.
  else if (!joins && !isFinal(outcome) && !(outcome.kind === 'failed' && outcome.error.mayHaveActed))
    await dropped(repeats, hash, begun);
  return { outcome, key, joins };
}

/** A refusal is answered, also where it cannot be forgotten: then the identical call has the same key, which does no harm. */
async function dropped(repeats: Repeats, hash: string, begun: Begun): Promise<void> {
  try {
    await repeats.drop(hash, begun);
  } catch {}
}
