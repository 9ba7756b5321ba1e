import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Standing approvals, and the basis of a held call's decision, from which one is created: sealed, because both quote requests. They are
 * facts: creating or ending one renews the fact version; a use does not, unless it is the last one.
 */
export async function standingApprovals(
  db: Kysely<unknown>,
  types: ColumnTypes,
  dialect: Store['dialect'],
): Promise<void> {
  const bytes = sql.raw(types.bytes);
  // Null: held before this migration, or too long.
  await db.schema.alterTable('approvals').addColumn('basis', bytes).execute();
  await db.schema
    .createTable('standing_approvals')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    // No foreign keys: the row stays listed for a while after the connection or grant is removed, which ends the standing approval.
    .addColumn('connection_id', 'text', (c) => c.notNull())
    .addColumn('grant_id', 'text', (c) => c.notNull())
    .addColumn('scope', 'text', (c) => c.notNull())
    .addColumn('approval_id', 'text', (c) => c.notNull())
    .addColumn('session_id', 'text')
    .addColumn('uses', 'integer', (c) => c.notNull())
    .addColumn('uses_left', 'integer', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('decided_on', 'text', (c) => c.notNull())
    .addColumn('terms', bytes, (c) => c.notNull())
    .addColumn('terms_hash', 'text', (c) => c.notNull())
    .addColumn('decided_by', 'text', (c) => c.notNull())
    .addColumn('decided_how', 'text', (c) => c.notNull())
    .addColumn('decided_with', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('ended_at', 'bigint')
    .addColumn('ended_because', 'text', (c) => c.check(sql`ended_because in ('owner', 'used', 'agent', 'grant')`))
    .addColumn('ended_by', 'text')
    .addPrimaryKeyConstraint('standing_approvals_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('standing_approvals_agent', ['organisation_id', 'agent_id'], 'agents', [
      'organisation_id',
      'id',
    ])
    .addCheckConstraint('standing_approvals_ended', sql`(ended_at is null) = (ended_because is null)`)
    .addCheckConstraint('standing_approvals_left', sql`uses_left >= 0 and uses_left <= uses`)
    .execute();
  await db.schema
    .createIndex('standing_approvals_in_force')
    .on('standing_approvals')
    .columns(['organisation_id', 'agent_id', 'platform_id'])
    .where(sql.ref('ended_at'), 'is', null)
    .execute();
  await db.schema.createIndex('standing_approvals_over').on('standing_approvals').column('expires_at').execute();
  for (const { on, when } of WATCHES)
    await sql.raw(dialect === 'sqlite' ? onSqlite(on, when) : onPostgres(on, when)).execute(db);
}

const WATCHES = [
  { on: 'insert', when: 'new.ended_at is null' },
  { on: 'update', when: 'old.ended_at is distinct from new.ended_at' },
  { on: 'delete', when: 'old.ended_at is null' },
] as const;

const onSqlite = (on: string, when: string) =>
  `create trigger fact_version_standing_approvals_${on} after ${on} on standing_approvals when ${when}
   begin
     insert into fact_versions (organisation_id, version)
       values (${on === 'delete' ? 'old' : 'new'}.organisation_id, hex(randomblob(16)))
       on conflict (organisation_id) do update set version = excluded.version;
   end`;

const onPostgres = (on: string, when: string) =>
  `create constraint trigger fact_version_standing_approvals_${on} after ${on} on standing_approvals
   deferrable initially deferred for each row when (${when})
   execute function renew_fact_version_by_organisation_id()`;
