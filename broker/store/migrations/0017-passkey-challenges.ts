import type { Kysely } from 'kysely';

/** A challenge enrols one passkey only; and which processes are members of the run that challenges are bound to. */
export async function passkeyChallenges(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('used_challenges')
    .addColumn('challenge_hash', 'text', (c) => c.primaryKey())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  // Default 1: a process of a version without this column is a member as soon as it is registered.
  await db.schema
    .alterTable('instances')
    .addColumn('member', 'integer', (c) => c.notNull().defaultTo(1))
    .execute();
}
