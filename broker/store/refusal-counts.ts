/**
 * Counts refusals of agents, children included, for organisations with auto-suspension. Only refusals write here. Children are counted with
 * their parent.
 */
import { sql } from 'kysely';
import type { Db } from './store.ts';
import type { RefusalCountTable } from './tables/agents.ts';

/**
 * Counts one refusal in a single atomic statement, for all replicas: starts a new window when the last one has ended. Returns the count of the
 * window, including this refusal.
 */
export async function countRefusal(
  db: Db,
  agent: Pick<RefusalCountTable, 'organisation_id' | 'agent_id'>,
  windowMs: number,
  now: number,
): Promise<number> {
  const inWindow = sql<boolean>`refusal_counts.window_start > ${now - windowMs}`;
  const { refusals } = await db
    .insertInto('refusal_counts')
    .values({ ...agent, refusals: 1, window_start: now })
    .onConflict((c) =>
      c.columns(['organisation_id', 'agent_id']).doUpdateSet({
        refusals: sql<number>`case when ${inWindow} then refusal_counts.refusals + 1 else 1 end`,
        window_start: sql<number>`case when ${inWindow} then refusal_counts.window_start else cast(${now} as bigint) end`,
      }),
    )
    .returning('refusals')
    .executeTakeFirstOrThrow();
  return refusals;
}

/** The count of the current window. */
export async function refusalsAt(
  db: Db,
  agent: Pick<RefusalCountTable, 'organisation_id' | 'agent_id'>,
  windowMs: number,
  now: number,
): Promise<number> {
  const found = await db
    .selectFrom('refusal_counts')
    .select('refusals')
    .where('organisation_id', '=', agent.organisation_id)
    .where('agent_id', '=', agent.agent_id)
    .where('window_start', '>', now - windowMs)
    .executeTakeFirst();
  return found?.refusals ?? 0;
}

/** Resets an agent's count. */
export async function forgetRefusals(db: Db, organisationId: string, agentUuid: string): Promise<void> {
  await db
    .deleteFrom('refusal_counts')
    .where('organisation_id', '=', organisationId)
    .where('agent_id', '=', agentUuid)
    .execute();
}

/** Deletes windows that began before `before`. */
export async function purgeRefusalCounts(db: Db, before: number): Promise<void> {
  await db.deleteFrom('refusal_counts').where('window_start', '<', before).execute();
}
