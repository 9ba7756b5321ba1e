import type { Kysely } from 'kysely';

/** Addresses of removed owners, so that what they decided and changed keeps a readable name. */
export async function formerOwners(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('former_owners')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('email', 'text', (c) => c.notNull())
    .addColumn('removed_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('former_owners_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('former_owners_organisation', ['organisation_id'], 'organisations', ['id'])
    .execute();
}
