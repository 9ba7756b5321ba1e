import type { Kysely } from 'kysely';

/** Whether an owner's role follows the groups that the identity provider says the person is in. */
export async function rolesByGroups(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('owners')
    .addColumn('role_by_groups', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
}
