import type { Kysely } from 'kysely';

/** How long an organisation keeps its audit, and up to which index in the receipt log expired rows were announced and deleted, by kind. */
export async function retention(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('organisations').addColumn('retention', 'text').execute();
  await db.schema
    .createTable('audit_purges')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('next_index', 'bigint', (c) => c.notNull())
    .addColumn('announced_index', 'bigint', (c) => c.notNull())
    .addColumn('event_id', 'text')
    .addPrimaryKeyConstraint('audit_purges_key', ['organisation_id', 'kind'])
    .execute();
}
