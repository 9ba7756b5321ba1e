import { type Kysely, sql } from 'kysely';

/** Pipelines (CI jobs, workloads of a cluster) that plan and apply governance files with tokens of their own platform. */
export async function pipelines(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('pipelines')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    // Part of the audience of the tokens, which names no organisation.
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('role', 'text', (c) => c.notNull().check(sql`role in ('admin', 'viewer')`))
    .addColumn('issuer', 'text', (c) => c.notNull())
    .addColumn('subject', 'text', (c) => c.notNull())
    .addColumn('jwks_uri', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('last_used_at', 'bigint')
    .addPrimaryKeyConstraint('pipelines_key', ['organisation_id', 'id'])
    .addUniqueConstraint('pipelines_by_name', ['organisation_id', 'name'])
    .addForeignKeyConstraint('pipelines_organisation', ['organisation_id'], 'organisations', ['id'])
    .execute();
}
