/**
 * Statistics of calls, for charts: over time, by agent and by platform, and how long decisions took. Read from counters, never by scanning all rows.
 */
import type { Broker } from '../../broker.ts';
import { momentOf } from '../../crypto/ids.ts';
import type { Instant } from '../../policy/facts.ts';
import {
  countedTo,
  countsByName,
  countsByTime,
  decisionTimes,
  type Outcome,
  rowsToCount,
  type Span,
} from '../../store/activity-counts.ts';
import { findAgentNames } from '../../store/agent-names.ts';
import type { ActivityCountTable } from '../../store/tables/calls.ts';
import { DAY_MS, HOUR_MS, sumOf } from './count-activity.ts';
import { bucketsOf, type Step } from './time-buckets.ts';

export const RANGES = ['day', 'week', 'month', 'year'] as const;
export type Range = (typeof RANGES)[number];

const OF_RANGE: Readonly<Record<Range, { ms: number; step: Step }>> = {
  day: { ms: DAY_MS, step: 'hour' },
  week: { ms: 7 * DAY_MS, step: 'hour' },
  month: { ms: 30 * DAY_MS, step: 'day' },
  year: { ms: 364 * DAY_MS, step: 'week' },
};

/** Rows newer than the counters are read one by one, up to this number; with more of them, the statistics end where the counters do. */
const MAX_NEW = 3_000;
const MAX_DECISIONS = 5_000;
const MAX_NAMED = 10;
/** Counts per agent cover at most this time. */
const AGENTS_MS = 30 * DAY_MS;
/** Sorts after every id. */
const END = 'g';

export type Numbers = { calls: number; allowed: number; held: number; refused: number; errored: number };
export type Bucket = Numbers & { at: Instant; decisions: number; p50: number | null; p90: number | null };
export type ActivityStats = {
  range: Range;
  step: Step;
  since: Instant;
  until: Instant;
  /** Until when calls are included; null: counting has not begun. */
  countedUntil: Instant | null;
  totals: Numbers;
  buckets: Bucket[];
  /** `p50`, `p90`: milliseconds. `sampled`: there were more decisions, and these values are of the newest ones. */
  decisions: { count: number; sampled: boolean; p50: number | null; p90: number | null };
  agentsSince: Instant;
  agents: (Numbers & { agentId: string; name: string | null })[];
  platforms: { platform: string; sent: number; failed: number }[];
};

/** Returns the statistics of a range that ends now. `zone`: time zone that defines the days (IANA). */
export async function activityStats(
  { store: { db } }: Pick<Broker, 'store'>,
  organisationId: string,
  { range, zone, now }: { range: Range; zone: string; now: Instant },
): Promise<ActivityStats> {
  const { ms, step } = OF_RANGE[range];
  const { starts, startOf } = bucketsOf(step, zone, { since: now - ms, until: now });
  const since = starts[0] ?? now;
  const span: Span = { since, until: now + 1 };
  const unit = step === 'week' ? DAY_MS : HOUR_MS;
  const byHour = range === 'day';
  const agentsSince = byHour ? since : Math.max(since - (since % DAY_MS), now - (now % DAY_MS) - AGENTS_MS);
  const mark = await countedTo(db, organisationId);
  const fresh = await rowsToCount(db, organisationId, { above: mark, below: END, limit: MAX_NEW + 1 });
  const isWhole = fresh.length <= MAX_NEW;
  const extra = isWhole ? sumOf(organisationId, fresh) : [];
  const of = (dimension: ActivityCountTable['dimension'], from: Instant) =>
    extra.filter((one) => one.dimension === dimension && one.at >= from - (from % HOUR_MS));

  const times = [...(await countsByTime(db, organisationId, span, unit)), ...of('platform_hour', since)];
  const totals = newNumbers();
  const buckets = new Map(starts.map((at) => [at, { at, ...newNumbers(), took: [] as number[] }]));
  for (const { at, outcome, calls } of times) {
    const bucket = buckets.get(startOf(at) ?? Number.NaN);
    if (bucket === undefined) continue;
    add(bucket, outcome, calls);
    add(totals, outcome, calls);
  }
  const { decided, isCut } = await decisionTimes(db, organisationId, span, MAX_DECISIONS);
  for (const { heldAt, tookMs } of decided) buckets.get(startOf(heldAt) ?? Number.NaN)?.took.push(tookMs);

  const dimension = byHour ? 'agent_hour' : 'agent_day';
  const agentCounts = await countsByName(db, organisationId, dimension, { since: agentsSince, until: now + 1 });
  const agents = byName([...agentCounts, ...of(dimension, agentsSince)])
    .filter(([, { calls }]) => calls > 0)
    .sort(([, a], [, b]) => b.calls - a.calls)
    .slice(0, MAX_NAMED);
  const names = await findAgentNames(
    db,
    organisationId,
    agents.map(([id]) => id),
  );
  const platformCounts = [
    ...(await countsByName(db, organisationId, 'platform_hour', span)),
    ...of('platform_hour', since),
  ];
  return {
    range,
    step,
    since,
    until: now,
    countedUntil: isWhole ? now : mark === '' ? null : momentOf(mark),
    totals,
    buckets: [...buckets.values()].map(({ took, ...bucket }) => ({
      ...bucket,
      decisions: took.length,
      ...quantiles(took),
    })),
    decisions: {
      count: decided.length,
      sampled: isCut,
      ...quantiles(decided.map(({ tookMs }) => tookMs)),
    },
    agentsSince,
    agents: agents.map(([agentId, numbers]) => ({ agentId, name: names.get(agentId) ?? null, ...numbers })),
    platforms: failingFirst(platformCounts),
  };
}

const newNumbers = (): Numbers => ({ calls: 0, allowed: 0, held: 0, refused: 0, errored: 0 });

/** The replay of an approved call is not counted as a call: its hold was. */
const COUNTED_AS: Readonly<Record<Outcome, (keyof Numbers)[]>> = {
  allowed: ['calls', 'allowed'],
  failed: ['calls', 'errored'],
  errored: ['calls', 'errored'],
  held: ['calls', 'held'],
  denied: ['calls', 'refused'],
  blocked: ['calls', 'refused'],
  made: [],
  made_failed: ['errored'],
};

function add(numbers: Numbers, outcome: Outcome, calls: number): void {
  for (const name of COUNTED_AS[outcome]) numbers[name] += calls;
}

type Named = { name: string; outcome: Outcome; calls: number };

function byName(counts: readonly Named[]): [string, Numbers][] {
  const all = new Map<string, Numbers>();
  for (const { name, outcome, calls } of counts) {
    const numbers = all.get(name) ?? newNumbers();
    add(numbers, outcome, calls);
    all.set(name, numbers);
  }
  return [...all];
}

/** Returns counts of calls that were sent or should have been, and of those that failed, by platform. */
function failingFirst(counts: readonly Named[]): ActivityStats['platforms'] {
  const all = new Map<string, { platform: string; sent: number; failed: number }>();
  for (const { name, outcome, calls } of counts) {
    const hasFailed = outcome === 'failed' || outcome === 'errored' || outcome === 'made_failed';
    if (name === '' || !(hasFailed || outcome === 'allowed' || outcome === 'made')) continue;
    const one = all.get(name) ?? { platform: name, sent: 0, failed: 0 };
    one.sent += calls;
    if (hasFailed) one.failed += calls;
    all.set(name, one);
  }
  return [...all.values()].sort((a, b) => b.failed - a.failed || b.sent - a.sent).slice(0, MAX_NAMED);
}

/** Quantiles by nearest rank; null without values. */
function quantiles(values: readonly number[]): { p50: number | null; p90: number | null } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  return { p50: at(0.5), p90: at(0.9) };
}
