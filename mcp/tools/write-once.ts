/** Submits writes with one Idempotency-Key until the result is delivered. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Action, CallOutcome } from '../client/action.ts';
import type { ToolHost } from './tool-host.ts';
import type { Written } from './written.ts';

const IN_PROGRESS = 'idempotency_in_progress';
const DEFAULT_PAUSE_SECONDS = 2;
const MIN_PAUSE_MS = 500;

/** Errors that the broker stores for a key, in addition to responses and held calls: retries get the same. */
const LAST_WORDS = new Set(['idempotency_outcome_unknown', 'upstream_response_blocked', 'upstream_unreachable']);

/** Whether the outcome is that of the recorded call. A refusal concerns this attempt only. */
export const isFinal = (outcome: CallOutcome): boolean =>
  outcome.kind === 'answered' ||
  (outcome.kind === 'failed' && outcome.error.mayHaveActed && LAST_WORDS.has(outcome.error.code));

/**
 * Submits a write, and waits until `endsAt` (time in milliseconds) while an identical one is in progress elsewhere, whose result
 * is then returned. Not aborted when the client cancels: the write may be in progress already, and its outcome has to be known.
 */
export async function writeOnce(
  { client, repeats }: Pick<ToolHost, 'client' | 'repeats'>,
  action: Action,
  { hash, endsAt, traceparent }: { hash: string; endsAt: number; traceparent?: string | undefined },
): Promise<Written> {
  const begun = await repeats.begin(hash, action.reason);
  const { key, reason } = begun;
  const { reason: _, ...rest } = action;
  const submit = () =>
    client.call({ ...rest, ...(reason !== undefined && { reason }) }, { idempotencyKey: key, traceparent });
  let outcome = await submit();
  let joins = !begun.isNew;
  while (outcome.kind === 'failed' && outcome.error.code === IN_PROGRESS) {
    joins = true;
    const leftMs = endsAt - Date.now();
    if (leftMs <= 0) break;
    const { retryAfterSeconds = DEFAULT_PAUSE_SECONDS } = outcome.error;
    await sleep(Math.min(Math.max(retryAfterSeconds * 1000, MIN_PAUSE_MS), leftMs));
    outcome = await submit();
  }
  if (outcome.kind === 'held') await repeats.held(hash, key, outcome.approvalId);
  // There was no other attempt, and this one was refused or never sent: there is nothing to deduplicate.
  else if (!joins && !isFinal(outcome) && !(outcome.kind === 'failed' && outcome.error.mayHaveActed))
    await repeats.drop(hash, begun);
  return { outcome, key, joins };
}
