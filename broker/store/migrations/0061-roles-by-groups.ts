import type { Kysely } from 'kysely';

/** Whether an owner's role is derived from the person's groups at the identity provider. */
export async function rolesByGroups(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('owners')
    .addColumn('role_by_groups', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
}
