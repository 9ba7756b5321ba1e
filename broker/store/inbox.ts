/** Counts for the owners' inbox. */
import type { Db } from './store.ts';

export type Waiting = { approvals: number; access_requests: number; registrations: number };

/** Counts pending items of all kinds in one statement. */
export async function countWaiting(db: Db, organisationId: string, now: number): Promise<Waiting> {
  const counted = await db
    .selectNoFrom((eb) => [
      eb
        .selectFrom('approvals')
        .select((each) => each.fn.countAll().as('count'))
        .where('organisation_id', '=', organisationId)
        .where('status', '=', 'pending')
        .where('expires_at', '>', now)
        .as('approvals'),
      eb
        .selectFrom('access_requests')
        .select((each) => each.fn.countAll().as('count'))
        .where('organisation_id', '=', organisationId)
        .where('status', '=', 'pending')
        .where('expires_at', '>', now)
        .as('access_requests'),
      eb
        .selectFrom('registrations')
        .select((each) => each.fn.countAll().as('count'))
        .where('organisation_id', '=', organisationId)
        .where('status', '=', 'pending')
        .where('expires_at', '>', now)
        .as('registrations'),
    ])
    .executeTakeFirstOrThrow();
  return {
    approvals: Number(counted.approvals),
    access_requests: Number(counted.access_requests),
    registrations: Number(counted.registrations),
  };
}

/** Counts the held calls that wait for a decision, by platform. `now`: milliseconds since the epoch. */
export async function countHeldByPlatform(db: Db, organisationId: string, now: number): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('approvals')
    .select((eb) => ['platform_id', eb.fn.countAll().as('count')])
    .where('organisation_id', '=', organisationId)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .groupBy('platform_id')
    .execute();
  return new Map(rows.map((row) => [row.platform_id, Number(row.count)]));
}
