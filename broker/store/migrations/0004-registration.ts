import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** How agents are created: registrations that owners decide on, and invites. */
export async function registration(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  await db.schema
    .createTable('registrations')
    .addColumn('token_hash', 'text', (c) => c.primaryKey())
    // Null: the owner_id is unknown. Such a row waits and expires like any other, so that the caller cannot detect that.
    .addColumn('organisation_id', 'text')
    .addColumn('id', 'text', (c) => c.notNull().unique())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull().unique())
    .addColumn('agent_name', 'text', (c) => c.notNull())
    .addColumn('agent_description', 'text')
    .addColumn('requested_scopes', 'text', (c) => c.notNull())
    .addColumn('source', 'text', (c) => c.notNull())
    .addColumn('status', 'text', (c) =>
      c.notNull().check(sql`status in ('pending', 'approved', 'rejected', 'expired')`),
    )
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('decided_at', 'bigint')
    .addColumn('decided_by', 'text')
    .addColumn('decision_audit_id', 'text')
    .addColumn('granted', 'text')
    .addColumn('private_key', bytes)
    .addColumn('claim_until', 'bigint')
    .addColumn('claimed_at', 'bigint')
    .addForeignKeyConstraint('registrations_owner', ['organisation_id', 'owner_id'], 'owners', [
      'organisation_id',
      'id',
    ])
    .addCheckConstraint(
      'registrations_decided',
      sql`case when status in ('approved', 'rejected')
        then organisation_id is not null and decided_at is not null and decided_by is not null and decision_audit_id is not null
        else decided_at is null and decided_by is null and decision_audit_id is null
      end`,
    )
    // The private key exists from the approval until it is collected, or its time for collection has expired.
    .addCheckConstraint(
      'registrations_key',
      sql`case when status = 'approved'
        then granted is not null and claim_until is not null and (claimed_at is null or private_key is null)
        else granted is null and claim_until is null and claimed_at is null and private_key is null
      end`,
    )
    .execute();
  // To count pending registrations per owner_id, known or not.
  await sql`create index registrations_waiting_for on registrations (owner_id, expires_at)
    where status = 'pending'`.execute(db);
  await sql`create index registrations_waiting_of_organisation on registrations (organisation_id, expires_at)
    where status = 'pending'`.execute(db);
  await db.schema
    .createIndex('registrations_of_organisation')
    .on('registrations')
    .columns(['organisation_id', 'created_at', 'id'])
    .execute();
  // For background jobs, which read across organisations.
  await db.schema.createIndex('registrations_over').on('registrations').column('expires_at').execute();
  await sql`create index registrations_unclaimed on registrations (claim_until)
    where private_key is not null`.execute(db);

  await db.schema
    .createTable('invites')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('token_hash', 'text', (c) => c.notNull().unique())
    .addColumn('agent_name', 'text', (c) => c.notNull())
    .addColumn('policy_id', 'text')
    .addColumn('grants', 'text', (c) => c.notNull())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('claimed_at', 'bigint')
    .addColumn('agent_id', 'text')
    .addPrimaryKeyConstraint('invites_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('invites_owner', ['organisation_id', 'owner_id'], 'owners', ['organisation_id', 'id'])
    .addCheckConstraint('invites_claimed', sql`(claimed_at is null) = (agent_id is null)`)
    .execute();
  await db.schema.createIndex('invites_over').on('invites').column('expires_at').execute();
}
