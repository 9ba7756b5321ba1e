import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * Valid combinations of an approval's columns. SQLite can add a constraint only with a new column, so this one is added with the last
 * column; both stores allow a column's check to refer to other columns.
 */
const POSSIBLE = sql`
  (case when status in ('approved', 'denied')
    then decided_at is not null and decided_by is not null and decided_how is not null and decision_audit_id is not null
    else decided_at is null and decided_by is null and decided_how is null and decision_audit_id is null and note is null
  end)
  and ((status = 'approved') = (exec_state <> 'none'))
  and (case exec_state
    when 'none' then lease_owner is null and replay_audit_id is null
    when 'claimed' then lease_owner is not null and replay_audit_id is null
    else lease_owner is not null and replay_audit_id is not null
  end)
  and ((exec_state = 'done') = (result is not null))
  and ((exec_state = 'done') = (result_summary is not null))
  and ((exec_state in ('failed', 'unknown')) = (execution_error is not null))
  and (case exec_state when 'done' then executed_at is not null when 'failed' then true else executed_at is null end)`;

/** Adds the decision about a held call (who, when, how), and the state of its replay. */
export async function approvals(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  const add = (name: string, type: 'text' | 'bigint' | typeof bytes) =>
    db.schema.alterTable('approvals').addColumn(name, type).execute();
  await add('decided_at', 'bigint');
  await add('decided_by', 'text');
  await db.schema
    .alterTable('approvals')
    .addColumn('decided_how', 'text', (c) => c.check(sql`decided_how in ('console', 'api', 'passkey')`))
    .execute();
  await add('note', 'text');
  await add('decision_audit_id', 'text');
  await db.schema
    .alterTable('approvals')
    .addColumn('exec_state', 'text', (c) =>
      c
        .notNull()
        .defaultTo('none')
        .check(sql`exec_state in ('none', 'claimed', 'intent', 'done', 'failed', 'unknown')`),
    )
    .execute();
  await add('lease_owner', 'text');
  await db.schema
    .alterTable('approvals')
    .addColumn('fence', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await add('executed_at', 'bigint');
  await add('execution_error', 'text');
  await add('result', bytes);
  await add('result_summary', 'text');
  await db.schema
    .alterTable('approvals')
    .addColumn('replay_audit_id', 'text', (c) => c.check(POSSIBLE))
    .execute();

  // For the inbox of an organisation.
  await db.schema
    .createIndex('approvals_of_organisation')
    .on('approvals')
    .columns(['organisation_id', 'created_at', 'id'])
    .execute();
  // For background jobs and recovery, which read few rows across organisations.
  await sql`create index approvals_waiting on approvals (expires_at) where status = 'pending'`.execute(db);
  await sql`create index approvals_under_way on approvals (id) where exec_state in ('claimed', 'intent')`.execute(db);
}
