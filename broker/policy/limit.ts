/**
 * Limits of rules: a rule with one applies to the calls that would bring what was used in a period over it. Periods are those of the calendar
 * in UTC, so that everybody knows when the next one begins.
 */
import type { Amount } from './compiled-condition.ts';

export const PERIODS = ['hour', 'day', 'week', 'month'] as const;
export type Period = (typeof PERIODS)[number];

/** As it is written. `of`: a CEL expression, the amount of a call; without it calls are counted. `together`: of all agents. */
export type LimitSource = { most: number; per: Period; of?: string; together?: true };

/** Compiled. */
export type Limit = { most: number; per: Period; together: boolean; of?: Amount };

/** A rule with a limit that counts a call. */
export type Counted = {
  source: 'policy' | 'guardrail';
  rule: string;
  limit: Limit;
  /** What the call adds; undefined: it cannot be told, and counts against the agent. */
  amount: number | undefined;
  /** Why it cannot be told. */
  error?: string;
};

/** The same with what was used in the period before. */
export type Charge = Counted & { used: number };

/** What is told of a limit. `asked`: by this call; null: that cannot be told. `left`: before it. */
export type ToldLimit = {
  rule: string;
  most: number;
  per: Period;
  used: number;
  asked: number | null;
  left: number;
  resets_at: string;
};

/** A call that takes nothing brings nothing over its limit, also where more is used than that by what was approved. */
export const isOver = ({ amount, used, limit }: Charge): boolean =>
  amount === undefined || (amount > 0 && used + amount > limit.most);

export const toldLimit = ({ rule, amount, used, limit }: Charge, now: number): ToldLimit => ({
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
/** The first Monday since the epoch, with which weeks begin (ISO 8601). */
const MONDAY_MS = 4 * DAY_MS;

/** The period of this moment. All are milliseconds since the epoch. */
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

/** `100 a day of request.body.amount, of all agents together`. */
export const limitSaid = ({ most, per, of, together }: LimitSource): string =>
  `${most} a${per === 'hour' ? 'n' : ''} ${per}${of === undefined ? '' : ` of ${of}`}${together ? ', of all agents together' : ''}`;

/** `20 of 20 a day are used, and the next day begins at 2026-11-28T00:00:00.000Z`. */
export const limitInWords = ({ used, asked, most, per, resets_at }: ToldLimit): string =>
  `${used} of ${most} a${per === 'hour' ? 'n' : ''} ${per} are used${asked === null || asked === 1 ? '' : `, and it is ${asked}`}; the next ${per} begins at ${resets_at}`;
