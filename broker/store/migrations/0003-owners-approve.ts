import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** Passkeys, access requests, and records of signing in and out. */
export async function ownersApprove(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  await db.schema
    .createTable('passkeys')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('credential_id', 'text', (c) => c.notNull())
    .addColumn('public_key', bytes, (c) => c.notNull())
    .addColumn('counter', 'bigint', (c) => c.notNull().check(sql`counter >= 0`))
    .addColumn('transports', 'text', (c) => c.notNull())
    .addColumn('device_name', 'text', (c) => c.notNull())
    .addColumn('aaguid', 'text', (c) => c.notNull())
    .addColumn('synced', 'integer', (c) => c.notNull())
    .addColumn('status', 'text', (c) => c.notNull().check(sql`status in ('active', 'disabled', 'removed')`))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('last_used_at', 'bigint')
    .addPrimaryKeyConstraint('passkeys_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('passkeys_owner', ['organisation_id', 'owner_id'], 'owners', ['organisation_id', 'id'])
    .execute();
  // An authenticator generates a unique id (WebAuthn section 7.1, step 26), so it is unique across organisations.
  await db.schema.createIndex('passkeys_credential').on('passkeys').column('credential_id').unique().execute();
  await db.schema
    .createIndex('passkeys_of_owner')
    .on('passkeys')
    .columns(['organisation_id', 'owner_id', 'created_at'])
    .execute();

  await db.schema
    .createTable('access_requests')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('token', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    // Empty: no scope was named. Not null, so that the unique index below detects the duplicate.
    .addColumn('scope', 'text', (c) => c.notNull())
    .addColumn('reason_code', 'text', (c) =>
      c
        .notNull()
        .check(sql`reason_code in ('not_connected', 'not_granted', 'grant_expired', 'needs_consent', 'scope_denied')`),
    )
    .addColumn('reason', 'text')
    .addColumn('status', 'text', (c) => c.notNull().check(sql`status in ('pending', 'approved', 'denied', 'expired')`))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('decided_at', 'bigint')
    .addColumn('decided_by', 'text')
    .addColumn('note', 'text')
    // JSON: the scopes that the approval granted.
    .addColumn('granted', 'text')
    .addColumn('decision_audit_id', 'text', (c) =>
      c.check(sql`
        (case when status in ('approved', 'denied')
          then decided_at is not null and decided_by is not null and decision_audit_id is not null
          else decided_at is null and decided_by is null and decision_audit_id is null and note is null
        end)
        and ((status = 'approved') = (granted is not null))`),
    )
    .addPrimaryKeyConstraint('access_requests_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('access_requests_agent', ['organisation_id', 'agent_id'], 'agents', [
      'organisation_id',
      'id',
    ])
    .execute();
  await db.schema.createIndex('access_requests_token').on('access_requests').column('token').unique().execute();
  await sql`create unique index access_requests_open on access_requests (organisation_id, agent_id, platform_id, scope)
    where status = 'pending'`.execute(db);
  await sql`create index access_requests_waiting on access_requests (expires_at) where status = 'pending'`.execute(db);
  await db.schema
    .createIndex('access_requests_of_organisation')
    .on('access_requests')
    .columns(['organisation_id', 'created_at', 'id'])
    .execute();

  // Session JWTs cannot be revoked, so a sign-out is stored until the session would have expired.
  await db.schema
    .createTable('ended_sessions')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('session_id', 'text', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('ended_sessions_key', ['organisation_id', 'session_id'])
    .execute();

  // Identity of an owner at the identity provider, from the first sign-in on: an e-mail address may be reassigned to another person.
  await db.schema.alterTable('owners').addColumn('oidc_subject', 'text').execute();
  await sql`create unique index owners_oidc_subject on owners (oidc_subject, organisation_id)
    where oidc_subject is not null`.execute(db);
  // A person who signs in through the provider is looked up in all organisations.
  await db.schema.createIndex('owners_by_email').on('owners').column('email').execute();
  await db.schema
    .alterTable('organisations')
    .addColumn('require_user_verification', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  // By id alone: a decision by passkey through a link names no organisation.
  await db.schema.createIndex('approvals_by_id').on('approvals').column('id').unique().execute();
  // While an owner has the console open, pending calls are counted after every change.
  await sql`create index approvals_waiting_of_organisation on approvals (organisation_id, expires_at)
    where status = 'pending'`.execute(db);
  await sql`create index access_requests_waiting_of_organisation on access_requests (organisation_id, expires_at)
    where status = 'pending'`.execute(db);
  // JSON: the passkey that decided, whether its user was verified, what its counter said.
  await db.schema.alterTable('approvals').addColumn('decided_with', 'text').execute();
}
