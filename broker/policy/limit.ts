/**
 * Limits of rules: a rule with a limit applies to calls that would exceed it in the current period. Periods are those of the calendar in UTC, so that it is
 * predictable when the next one begins.
 */
import type { Amount } from './conditions/compiled.ts';

export const PERIODS = ['hour', 'day', 'week', 'month'] as const;
export type Period = (typeof PERIODS)[number];

/** A limit as it is written. `of`: a CEL expression for the amount of a call; without it calls are counted. `together`: one count for all agents. */
export type LimitSource = { most: number; per: Period; of?: string; together?: true };

/** A compiled limit. */
export type Limit = { most: number; per: Period; together: boolean; of?: Amount };

/** A rule with a limit towards which a call counts. */
export type Counted = {
  source: 'policy' | 'guardrail';
  rule: string;
  limit: Limit;
  /** The amount of the call; undefined: it cannot be determined, and the rule decides against the agent. */
  amount: number | undefined;
  /** Why the amount cannot be determined. */
  error?: string;
};

/** `used`: what was used in the period before this call. */
export type Charge = Counted & { used: number };

/** A limit as it is reported to clients. `asked`: the amount of this call; null: unknown. `left`: before this call. */
export type ReportedLimit = {
  rule: string;
  most: number;
  per: Period;
  used: number;
  asked: number | null;
  left: number;
  resets_at: string;
};

/** Whether a call exceeds a limit. A call with the amount 0 never does, even when approved calls have already used more than the limit. */
export const exceedsLimit = ({ amount, used, limit }: Charge): boolean =>
  amount === undefined || (amount > 0 && used + amount > limit.most);

export const reportedLimit = ({ rule, amount, used, limit }: Charge, now: number): ReportedLimit => ({
  rule,
  most: limit.most,
  per: limit.per,
  used,
  asked: amount ?? null,
  left: Math.max(0, limit.most - used),
  resets_at: new Date(periodAt(limit.per, now).end).toISOString(),
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The first Monday after the epoch; weeks begin on Mondays (ISO 8601). */
const MONDAY_MS = 4 * DAY_MS;

/** Returns the period that contains a time. All values are milliseconds since the epoch. */
export function periodAt(per: Period, now: number): { start: number; end: number } {
  if (per === 'month') {
    const date = new Date(now);
    const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
    return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
  }
  const [length, offset] = { hour: [HOUR_MS, 0], day: [DAY_MS, 0], week: [7 * DAY_MS, MONDAY_MS] }[per] as [
    number,
    number,
  ];
  const start = Math.floor((now - offset) / length) * length + offset;
  return { start, end: start + length };
}

/** Formats: `100 a day of request.body.amount, of all agents together`. */
export const describeLimit = ({ most, per, of, together }: LimitSource): string =>
  `${most} a${per === 'hour' ? 'n' : ''} ${per}${of === undefined ? '' : ` of ${of}`}${together ? ', of all agents together' : ''}`;

/** Formats: `20 of 20 a day are used; the next day begins at 2026-11-28T00:00:00.000Z`. The amount is left out for one more where nothing is left. */
export const describeLimitUse = ({ used, asked, most, per, resets_at }: ReportedLimit): string =>
  `${used} of ${most} a${per === 'hour' ? 'n' : ''} ${per} are used${asked === null || (asked === 1 && used >= most) ? '' : `, and it is ${asked}`}; the next ${per} begins at ${resets_at}`;
