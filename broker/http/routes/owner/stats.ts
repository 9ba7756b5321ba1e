/** Statistics of calls, for charts. */
import { z } from 'zod';
import { type ActivityStats, type Numbers, RANGES } from '../../../admin/activity/stats.ts';
import { isZone } from '../../../admin/activity/time-buckets.ts';
import { instant, json } from '../../reply.ts';
import { route } from '../../route.ts';

const count = z.int().min(0);
const seconds = (what: string) => z.number().min(0).nullable().describe(what);
const NUMBERS = {
  calls: count.describe('calls that agents requested; a call that was held and then made counts once'),
  allowed: count.describe('made, and accepted by the platform'),
  held: count,
  refused: count.describe('denied or blocked'),
  errored: count.describe('failed, or refused by the platform with a status from 400'),
};

const Stats = z
  .object({
    range: z.enum(RANGES),
    zone: z.string(),
    step: z.enum(['hour', 'day', 'week']),
    since: z.iso.datetime(),
    until: z.iso.datetime().describe('when these numbers were read; they are kept for some seconds'),
    counted_until: z.iso
      .datetime()
      .nullable()
      .describe('up to when calls are in: earlier than `until` while very many are new; null: counting has not begun'),
    totals: z.object(NUMBERS),
    buckets: z.array(
      z.object({
        at: z.iso.datetime().describe('its beginning'),
        ...NUMBERS,
        decisions: count.describe('held calls of this time that a person decided'),
        decision_p50_seconds: seconds('half of them took no longer; null: there were none'),
        decision_p90_seconds: seconds('nine in ten took no longer'),
      }),
    ),
    decisions: z.object({
      count: count,
      sampled: z.boolean().describe('true: there were more; these are of the newest 5,000 held calls'),
      p50_seconds: seconds('half took no longer'),
      p90_seconds: seconds('nine in ten took no longer'),
    }),
    agents_since: z.iso
      .datetime()
      .describe('start of the period for the figures of agents: whole days (UTC), 30 at most'),
    agents: z
      .array(z.object({ agent_id: z.string(), name: z.string().nullable(), ...NUMBERS }))
      .describe('the ten busiest'),
    platforms: z
      .array(z.object({ platform: z.string(), sent: count, failed: count }))
      .describe('ten, those with most failures first'),
  })
  .meta({ id: 'ActivityStats' });

/** GET /owner/stats */
export const ownerStats = route({
  method: 'GET',
  path: '/owner/stats',
  auth: 'owner',
  role: 'viewer',
  capability: 'owner.stats',
  summary: 'Numbers of calls by result, and how long decisions took.',
  query: z.object({
    range: z
      .enum(RANGES, `one of ${RANGES.join(', ')}`)
      .default('week')
      .describe('24 hours, 7 days, 30 days, or 52 weeks, until now'),
    zone: z
      .string()
      .max(64)
      .refine(isZone, 'a time zone such as Europe/Berlin')
      .default('UTC')
      .describe('whose days are counted with `range=month`; weeks are those of UTC'),
  }),
  answers: { 200: { description: 'The numbers.', schema: Stats } },
  errors: ['invalid_request'],
  handle: async ({ services, who, query }) => {
    const stats = await services.activityStats(who.organisationId, query.range, query.zone);
    return json(200, { ...shown(stats), zone: query.zone });
  },
});

const numbers = ({ calls, allowed, held, refused, errored }: Numbers) => ({ calls, allowed, held, refused, errored });
const inSeconds = (ms: number | null) => (ms === null ? null : Math.max(0, ms) / 1000);

const shown = ({ totals, buckets, decisions, agents, platforms, ...stats }: ActivityStats) => ({
  range: stats.range,
  step: stats.step,
  since: instant(stats.since),
  until: instant(stats.until),
  counted_until: instant(stats.countedUntil),
  totals: numbers(totals),
  buckets: buckets.map(({ at, decisions: decided, p50, p90, ...bucket }) => ({
    at: instant(at),
    ...numbers(bucket),
    decisions: decided,
    decision_p50_seconds: inSeconds(p50),
    decision_p90_seconds: inSeconds(p90),
  })),
  decisions: {
    count: decisions.count,
    sampled: decisions.sampled,
    p50_seconds: inSeconds(decisions.p50),
    p90_seconds: inSeconds(decisions.p90),
  },
  agents_since: instant(stats.agentsSince),
  agents: agents.map(({ agentId, name, ...rest }) => ({ agent_id: agentId, name, ...numbers(rest) })),
  platforms,
});
