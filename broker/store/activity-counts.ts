/** Counts of calls for charts: a small table that a background job fills from audit rows (admin/activity/count-activity.ts). */
import { sql } from 'kysely';
import type { AuditRow } from './audit.ts';
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';
import type { ActivityCountTable } from './tables/calls.ts';

export type Dimension = ActivityCountTable['dimension'];
export type Outcome = ActivityCountTable['outcome'];

/** The columns of an audit row that counting needs. */
export type CountedRow = Pick<
  AuditRow,
  'id' | 'state' | 'kind' | 'result' | 'agent_public_id' | 'platform_id' | 'approval_id' | 'upstream_status' | 'flags'
>;

/** Up to `limit` rows of an organisation above an id (exclusive) and below another one, oldest first. */
export async function rowsToCount(
  db: Db,
  organisationId: string,
  { above, below, limit }: { above: string; below: string; limit: number },
): Promise<CountedRow[]> {
  return await db
    .selectFrom('audit_rows')
    .select([
      'id',
      'state',
      'kind',
      'result',
      'agent_public_id',
      'platform_id',
      'approval_id',
      'upstream_status',
      'flags',
    ])
    .where('organisation_id', '=', organisationId)
    .where('id', '>', above)
    .where('id', '<', below)
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** The id of the last row that was counted; '' before the first. */
export async function countedTo(db: Db, organisationId: string): Promise<string> {
  const row = await db
    .selectFrom('activity_counted')
    .select('row_id')
    .where('organisation_id', '=', organisationId)
    .executeTakeFirst();
  return row?.row_id ?? '';
}

/** Moves the mark from one row to a later one with a guarded statement. False: another process has moved it. */
export async function moveMark(db: Db, organisationId: string, from: string, to: string): Promise<boolean> {
  if (from === '') {
    const made = await db
      .insertInto('activity_counted')
      .values({ organisation_id: organisationId, row_id: to })
      .onConflict((conflict) => conflict.doNothing())
      .returning('row_id')
      .executeTakeFirst();
    return made !== undefined;
  }
  const moved = await db
    .updateTable('activity_counted')
    .set({ row_id: to })
    .where('organisation_id', '=', organisationId)
    .where('row_id', '=', from)
    .returning('row_id')
    .executeTakeFirst();
  return moved !== undefined;
}

/** Rows per statement, well below the limit of parameters (PostgreSQL 65,535, SQLite 32,766). */
const MAX_BATCH = 500;

/** Adds these counts to the stored ones. */
export async function addCounts(db: Db, counts: readonly ActivityCountTable[]): Promise<void> {
  for (let at = 0; at < counts.length; at += MAX_BATCH)
    await db
      .insertInto('activity_counts')
      .values(counts.slice(at, at + MAX_BATCH))
      .onConflict((conflict) =>
        conflict
          .columns(['organisation_id', 'dimension', 'at', 'name', 'outcome'])
          .doUpdateSet((eb) => ({ calls: eb('activity_counts.calls', '+', eb.ref('excluded.calls')) })),
      )
      .execute();
}

export type Span = { since: number; until: number };
type Sum = { outcome: Outcome; calls: number };

const within = (db: Db, organisationId: string, dimension: Dimension, { since, until }: Span) =>
  db
    .selectFrom('activity_counts')
    .where('organisation_id', '=', organisationId)
    .where('dimension', '=', dimension)
    .where('at', '>=', since)
    .where('at', '<', until);

/** Returns calls of an organisation by intervals of `unit` milliseconds, a whole number of hours. */
export async function countsByTime(
  db: Db,
  organisationId: string,
  span: Span,
  unit: number,
): Promise<(Sum & { at: number })[]> {
  const at = sql<number>`at - at % ${sql.lit(unit)}`;
  const rows = await within(db, organisationId, 'platform_hour', span)
    .select([at.as('begins'), 'outcome', (eb) => eb.fn.sum('calls').as('calls')])
    .groupBy([at, 'outcome'])
    .execute();
  return rows.map(({ begins, outcome, calls }) => ({ at: Number(begins), outcome, calls: Number(calls) }));
}

/** Returns calls of an organisation by the names of a dimension. */
export async function countsByName(
  db: Db,
  organisationId: string,
  dimension: Dimension,
  span: Span,
): Promise<(Sum & { name: string })[]> {
  const rows = await within(db, organisationId, dimension, span)
    .select(['name', 'outcome', (eb) => eb.fn.sum('calls').as('calls')])
    .groupBy(['name', 'outcome'])
    .execute();
  return rows.map(({ name, outcome, calls }) => ({ name, outcome, calls: Number(calls) }));
}

/**
 * Returns, for the newest held calls that a person decided, when each was held and how many milliseconds the decision took. `isCut`: the
 * limit was reached, so there may be more.
 */
export async function decisionTimes(
  db: Db,
  organisationId: string,
  { since, until }: Span,
  limit: number,
): Promise<{ decided: { heldAt: number; tookMs: number }[]; isCut: boolean }> {
  const rows = await db
    .selectFrom('approvals')
    .select(['created_at', 'decided_at'])
    .where('organisation_id', '=', organisationId)
    .where('created_at', '>=', since)
    .where('created_at', '<', until)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  const decided = rows.flatMap(({ created_at, decided_at }) =>
    decided_at === null ? [] : [{ heldAt: Number(created_at), tookMs: Number(decided_at) - Number(created_at) }],
  );
  return { decided, isCut: rows.length === limit };
}

/** Deletes counts of a dimension that are older than `before`. */
export async function forgetCounts(db: Db, dimension: Dimension, before: number): Promise<void> {
  await db.deleteFrom('activity_counts').where('dimension', '=', dimension).where('at', '<', before).execute();
}

/** Returns the id below which the ids of all rows before this instant lie. */
export const rowsBefore = (instant: number): string => firstIdOf(instant);
