/** Earlier calls of an agent that rules look back at, such as one that read what strangers write. */

/**
 * A call that is made again within this time is not noted again, so that agents which read all the time cost nothing. By so much longer a
 * rule applies.
 */
export const NOTED_FOR_MS = 60_000;

/** The longest that a rule looks back. */
export const LONGEST_WITHIN_MS = 30 * 86_400_000;

/**
 * A rule that looks back at the call of this audit row; without one, at what was done before the store was restored, of which nothing is known.
 * `place`: in the rules of its version. Moments are milliseconds since the epoch.
 */
export type Earlier = {
  source: 'policy' | 'guardrail';
  place: number;
  auditId?: string;
  madeAt: number;
  until: number;
};

/** Until when a rule looks back at a call that was noted at this moment. */
export const untilOf = (withinMs: number, madeAt: number): number => madeAt + withinMs + NOTED_FOR_MS;

/**
 * Until when a rule applies in a restored store because the call that it looks back at may have been made after the backup; undefined: it does not.
 *
 * @param restoredAt when the store was restored, if it ever was
 */
export function unknownUntil(withinMs: number, restoredAt: number | undefined, now: number): number | undefined {
  const until = restoredAt === undefined ? undefined : untilOf(withinMs, restoredAt);
  return until !== undefined && until > now ? until : undefined;
}

/** `the agent made the call 0193… at 2026-11-27T12:00:00.000Z, and the rule applies until 2026-11-27T20:01:00.000Z`. */
export function earlierInWords({ auditId, madeAt, until }: Earlier): string {
  const at = new Date(madeAt).toISOString();
  const why =
    auditId === undefined
      ? `the store was restored at ${at}, and what the agent did after the backup is not known`
      : `the agent made the call ${auditId} at ${at}`;
  return `${why}, and the rule applies until ${new Date(until).toISOString()}`;
}
