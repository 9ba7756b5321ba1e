import type { Kysely } from 'kysely';

/**
 * Number of calls by hour and platform, and by hour and by day and agent, for charts. A background job counts them from audit rows;
 * `activity_counted` holds the last counted row.
 */
export async function activityCounts(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('activity_counts')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('dimension', 'text', (c) => c.notNull())
    .addColumn('at', 'bigint', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('outcome', 'text', (c) => c.notNull())
    .addColumn('calls', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('activity_counts_key', ['organisation_id', 'dimension', 'at', 'name', 'outcome'])
    .execute();
  // For deleting old counts across organisations.
  await db.schema.createIndex('activity_counts_old').on('activity_counts').columns(['dimension', 'at']).execute();
  await db.schema
    .createTable('activity_counted')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('row_id', 'text', (c) => c.notNull())
    .addPrimaryKeyConstraint('activity_counted_key', ['organisation_id'])
    .execute();
}
