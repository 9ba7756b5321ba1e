import type { Kysely } from 'kysely';

/** Pages where people see their consents: when each was last used, and the browser sessions of people. */
export async function personSessions(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('person_tokens').addColumn('last_used_at', 'bigint').execute();

  await db.schema
    .createTable('person_sessions')
    .addColumn('cookie_hash', 'text', (c) => c.notNull())
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('person_id', 'text', (c) => c.notNull())
    // The only consent that this session covers, which was given in this browser; empty: all consents of a person who signed in.
    .addColumn('consent_id', 'text', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('person_sessions_key', ['cookie_hash', 'organisation_id', 'person_id', 'consent_id'])
    .execute();
  await db.schema.createIndex('person_sessions_over').on('person_sessions').column('expires_at').execute();
}
