import type { Kysely } from 'kysely';

/**
 * How many calls there were, by hour and platform, and by hour and by day and agent, for plots. Counted from audit rows beside the
 * calls; `activity_counted` says up to which row.
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
  // Old ones are forgotten across organisations.
  await db.schema.createIndex('activity_counts_old').on('activity_counts').columns(['dimension', 'at']).execute();
  await db.schema
    .createTable('activity_counted')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('row_id', 'text', (c) => c.notNull())
    .addPrimaryKeyConstraint('activity_counted_key', ['organisation_id'])
    .execute();
}
