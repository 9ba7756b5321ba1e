/** Strikes and open breakers. Only failures write here; the row is deleted when its breaker closes. */
import { type ExpressionBuilder, sql } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { BreakerTable } from './tables/agents.ts';

export type BreakerKey = Pick<BreakerTable, 'organisation_id' | 'agent_id' | 'cause' | 'key'>;
export type BreakerLimits = { strikes: number; windowMs: number; openMs: number };

const isThis =
  ({ organisation_id, agent_id, cause, key }: BreakerKey) =>
  (eb: ExpressionBuilder<Schema, 'breakers'>) =>
    eb.and({ organisation_id, agent_id, cause, key });

/**
 * Counts one strike in a single atomic statement, for all replicas: starts a new window when the last one has ended, opens the
 * breaker at the limit, and reopens it immediately when a half-open one fails its trial. Returns the updated row.
 */
export async function strike(db: Db, key: BreakerKey, limits: BreakerLimits, now: number): Promise<BreakerTable> {
  const inWindow = sql<boolean>`breakers.window_start > ${now - limits.windowMs}`;
  const halfOpen = sql<boolean>`breakers.open_until is not null and breakers.open_until <= ${now}`;
  const full = sql<boolean>`breakers.strikes + 1 >= ${limits.strikes}`;
  const opens = sql<boolean>`(${halfOpen}) or (breakers.open_until is null and ${inWindow} and ${full})`;
  const first = limits.strikes <= 1;
  return await db
    .insertInto('breakers')
    .values({
      ...key,
      strikes: 1,
      window_start: now,
      opened_at: first ? now : null,
      open_until: first ? now + limits.openMs : null,
      trial_at: null,
    })
    .onConflict((c) =>
      c.columns(['organisation_id', 'agent_id', 'cause', 'key']).doUpdateSet({
        strikes: sql<number>`case when ${inWindow} then breakers.strikes + 1 else 1 end`,
        window_start: sql<number>`case when ${inWindow} then breakers.window_start else cast(${now} as bigint) end`,
        opened_at: sql<number>`case when ${opens} then cast(${now} as bigint) else breakers.opened_at end`,
        open_until: sql<number>`case when ${opens} then cast(${now + limits.openMs} as bigint) else breakers.open_until end`,
        trial_at: sql<number>`case when ${opens} then null else breakers.trial_at end`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Claims the trial call of a half-open breaker. A trial without a result can be claimed again after `openMs`. */
export async function claimTrial(db: Db, key: BreakerKey, openMs: number, now: number): Promise<boolean> {
  const claimed = await db
    .updateTable('breakers')
    .set({ trial_at: now })
    .where(isThis(key))
    .where('open_until', '<=', now)
    .where((eb) => eb.or([eb('trial_at', 'is', null), eb('trial_at', '<=', now - openMs)]))
    .returning('cause')
    .executeTakeFirst();
  return claimed !== undefined;
}

/** Releases the trial that was claimed at `takenAt`. No effect if it has a result, or if another call holds it now. */
export async function releaseTrial(db: Db, key: BreakerKey, takenAt: number): Promise<void> {
  await db.updateTable('breakers').set({ trial_at: null }).where(isThis(key)).where('trial_at', '=', takenAt).execute();
}

/** Closes a half-open breaker after a successful trial. False: it was already closed, or reopened since. */
export async function closeBreaker(db: Db, key: BreakerKey, now: number): Promise<boolean> {
  const closed = await db
    .deleteFrom('breakers')
    .where(isThis(key))
    .where('open_until', '<=', now)
    .returning('cause')
    .executeTakeFirst();
  return closed !== undefined;
}

/** Lists the open breakers of an organisation's agents, the one that closes last first. */
export async function listBreakersOpenAt(db: Db, organisationId: string, now: number): Promise<BreakerTable[]> {
  return await db
    .selectFrom('breakers')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('open_until', '>', now)
    .orderBy('open_until', 'desc')
    .execute();
}

/** Number of open breakers of an agent with one cause. */
export async function countBreakersOpenAt(
  db: Db,
  { organisation_id, agent_id, cause }: Pick<BreakerKey, 'organisation_id' | 'agent_id' | 'cause'>,
  now: number,
): Promise<number> {
  const { count } = await db
    .selectFrom('breakers')
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .where('organisation_id', '=', organisation_id)
    .where('agent_id', '=', agent_id)
    .where('cause', '=', cause)
    .where('open_until', '>', now)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Deletes strikes and breakers without activity since `before`. */
export async function purgeBreakers(db: Db, before: number): Promise<void> {
  await db
    .deleteFrom('breakers')
    .where('window_start', '<', before)
    .where((eb) => eb.or([eb('open_until', 'is', null), eb('open_until', '<', before)]))
    .execute();
}
