import type { Kysely } from 'kysely';

/** A challenge enrols one passkey; and which processes are members of the run that challenges are bound to. */
export async function passkeyChallenges(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('used_challenges')
    .addColumn('challenge_hash', 'text', (c) => c.primaryKey())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  // By default 1: processes of a version that does not know this column are members as soon as they are listed.
  await db.schema
    .alterTable('instances')
    .addColumn('member', 'integer', (c) => c.notNull().defaultTo(1))
    .execute();
}
