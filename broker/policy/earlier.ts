/** Earlier calls of an agent at which rules look back, such as one that read content written by strangers. */

/** A call that is repeated within this time is not stored again, so that agents which read all the time cost nothing. Rules apply longer by this time. */
export const REPEAT_WINDOW_MS = 60_000;

/** The longest look-back of a rule. */
export const MAX_WITHIN_MS = 30 * 86_400_000;

/**
 * A rule that looks back at the call of this audit row. Without `auditId`: at unknown calls, made after the backup from which the store was restored.
 * `place`: index in the rules of its version. Times are milliseconds since the epoch.
 */
export type Earlier = {
  source: 'policy' | 'guardrail';
  place: number;
  auditId?: string;
  madeAt: number;
  until: number;
};

/** Returns until when a rule looks back at a call that was stored at this time. */
export const untilOf = (withinMs: number, madeAt: number): number => madeAt + withinMs + REPEAT_WINDOW_MS;

/**
 * Returns until when a rule applies in a restored store because the call at which it looks back may have been made after the backup; undefined: it does not
 * apply.
 *
 * @param restoredAt when the store was restored; undefined when it never was
 */
export function unknownUntil(withinMs: number, restoredAt: number | undefined, now: number): number | undefined {
  const until = restoredAt === undefined ? undefined : untilOf(withinMs, restoredAt);
  return until !== undefined && until > now ? until : undefined;
}

/** Formats: `the agent made the call 0193… at 2026-11-27T12:00:00.000Z, and the rule applies until 2026-11-27T20:01:00.000Z`. */
export function describeEarlier({ auditId, madeAt, until }: Earlier): string {
  const at = new Date(madeAt).toISOString();
  const why =
    auditId === undefined
      ? `the store was restored at ${at}, and what the agent did after the backup is not known`
      : `the agent made the call ${auditId} at ${at}`;
  return `${why}, and the rule applies until ${new Date(until).toISOString()}`;
}
