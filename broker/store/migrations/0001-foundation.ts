import { type Kysely, sql } from 'kysely';

/** Column types that differ between the two stores. */
export type ColumnTypes = { bytes: 'bytea' | 'blob' };

const inList = (column: string, values: readonly string[]) =>
  sql`${sql.ref(column)} in (${sql.join(values.map((value) => sql.lit(value)))})`;

/** Organisations, owners, agents, platforms, connections, grants, policies, breakers, audit, approvals, keys. */
export async function foundation(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const bytes = sql.raw(types.bytes);
  await db.schema
    .createTable('organisations')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('name', 'text', (c) => c.notNull().unique())
    .addColumn('publish_identity_documents', 'integer', (c) => c.notNull())
    .addColumn('guardrails_version', 'integer', (c) => c.notNull())
    .addColumn('approval_ttl_ms', 'bigint', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute();

  await db.schema
    .createTable('owners')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('email', 'text', (c) => c.notNull())
    .addColumn('role', 'text', (c) => c.notNull().check(inList('role', ['admin', 'approver', 'viewer'])))
    .addColumn('origin', 'text', (c) => c.notNull().check(inList('origin', ['first_start', 'governance', 'added'])))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('owners_key', ['organisation_id', 'id'])
    .addUniqueConstraint('owners_email', ['organisation_id', 'email'])
    .execute();

  await db.schema
    .createTable('agents')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('owner_id', 'text', (c) => c.notNull())
    .addColumn('agent_type', 'text', (c) => c.check(inList('agent_type', ['key', 'child', 'mcp_client'])))
    .addColumn('status', 'text', (c) =>
      c.notNull().check(inList('status', ['active', 'suspended', 'revoked', 'pending', 'pending_bind', 'deleted'])),
    )
    .addColumn('status_since', 'bigint')
    .addColumn('status_cause', 'text')
    .addColumn('status_detail', 'text')
    .addColumn('policy_id', 'text')
    .addColumn('origin', 'text', (c) => c.notNull().check(inList('origin', ['governance', 'owner', 'registration'])))
    .addColumn('parent_id', 'text')
    .addColumn('public_key_pem', 'text')
    .addColumn('key_fingerprint', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint')
    .addPrimaryKeyConstraint('agents_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('agents_owner', ['organisation_id', 'owner_id'], 'owners', ['organisation_id', 'id'])
    .addCheckConstraint(
      'agents_bound',
      sql`status not in ('active') or agent_type <> 'key' or public_key_pem is not null`,
    )
    .execute();
  await db.schema.createIndex('agents_agent_id').on('agents').column('agent_id').unique().execute();
  // Does not start with organisation_id: without statistics the planner would use it to find one agent of many by id.
  await sql`create index agents_parent on agents (parent_id) where parent_id is not null`.execute(db);

  await db.schema
    .createTable('platforms')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('version', 'integer', (c) => c.notNull())
    .addColumn('suspended', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('platforms_key', ['organisation_id', 'platform_id'])
    .execute();
  await db.schema
    .createTable('platform_versions')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('version', 'integer', (c) => c.notNull())
    .addColumn('manifest', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('platform_versions_key', ['organisation_id', 'platform_id', 'version'])
    .execute();

  await db.schema
    .createTable('connections')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('label', 'text', (c) => c.notNull())
    .addColumn('is_default', 'integer', (c) => c.notNull())
    .addColumn('status', 'text', (c) => c.notNull().check(inList('status', ['active', 'reauth_needed'])))
    .addColumn('credential', bytes)
    .addColumn('secret_reference', 'text')
    .addColumn('upstream_scopes', 'text')
    .addColumn('revision', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('connections_key', ['organisation_id', 'id'])
    .addUniqueConstraint('connections_label', ['organisation_id', 'label'])
    .addForeignKeyConstraint('connections_platform', ['organisation_id', 'platform_id'], 'platforms', [
      'organisation_id',
      'platform_id',
    ])
    .execute();
  await db.schema
    .createIndex('connections_platform_index')
    .on('connections')
    .columns(['organisation_id', 'platform_id'])
    .execute();

  await db.schema
    .createTable('grants')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('connection_id', 'text')
    .addColumn('scopes', 'text', (c) => c.notNull())
    .addColumn('constraints', 'text', (c) => c.notNull())
    .addColumn('require_approval', 'integer', (c) => c.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('expires_text', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('grants_key', ['organisation_id', 'id'])
    .addForeignKeyConstraint('grants_agent', ['organisation_id', 'agent_id'], 'agents', ['organisation_id', 'id'])
    .execute();
  await db.schema
    .createIndex('grants_of_agent')
    .on('grants')
    .columns(['organisation_id', 'agent_id', 'platform_id'])
    .execute();

  await db.schema
    .createTable('policies')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('version', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('policies_key', ['organisation_id', 'id'])
    .addUniqueConstraint('policies_name', ['organisation_id', 'name'])
    .execute();
  await db.schema
    .createTable('policy_versions')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('policy_id', 'text', (c) => c.notNull())
    .addColumn('version', 'integer', (c) => c.notNull())
    .addColumn('rules', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('policy_versions_key', ['organisation_id', 'policy_id', 'version'])
    .execute();
  await db.schema
    .createTable('guardrails_versions')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('version', 'integer', (c) => c.notNull())
    .addColumn('rules', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('guardrails_versions_key', ['organisation_id', 'version'])
    .execute();

  await db.schema
    .createTable('breakers')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('cause', 'text', (c) =>
      c.notNull().check(inList('cause', ['breaker_auth_failure', 'breaker_api_error', 'breaker_upstream_failure'])),
    )
    .addColumn('key', 'text', (c) => c.notNull())
    .addColumn('strikes', 'integer', (c) => c.notNull())
    .addColumn('window_start', 'bigint', (c) => c.notNull())
    .addColumn('opened_at', 'bigint')
    .addColumn('open_until', 'bigint')
    .addColumn('trial_at', 'bigint')
    .addPrimaryKeyConstraint('breakers_key', ['organisation_id', 'agent_id', 'cause', 'key'])
    .execute();

  await db.schema
    .createTable('audit_rows')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('state', 'text', (c) => c.notNull().check(inList('state', ['intent', 'final'])))
    .addColumn('kind', 'text', (c) => c.notNull().check(inList('kind', ['action', 'event'])))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('finished_at', 'bigint')
    .addColumn('agent_id', 'text')
    .addColumn('agent_public_id', 'text')
    .addColumn('platform_id', 'text')
    .addColumn('connection_id', 'text')
    .addColumn('scope', 'text')
    .addColumn('method', 'text')
    .addColumn('path', 'text')
    .addColumn('result', 'text', (c) => c.check(inList('result', ['allowed', 'held', 'denied', 'blocked', 'errored'])))
    .addColumn('reason', 'text', (c) => c.notNull())
    .addColumn('detail', 'text')
    .addColumn('decision', 'text')
    .addColumn('approval_id', 'text')
    .addColumn('session_id', 'text')
    .addColumn('agent_reason', 'text')
    .addColumn('violating', 'text')
    .addColumn('upstream_status', 'integer')
    .addColumn('flags', 'text')
    .addColumn('pii', 'text')
    .addColumn('correlation_id', 'text', (c) => c.notNull())
    .addColumn('row_hash', 'text')
    .addColumn('receipt_kid', 'text')
    .addColumn('receipt', 'text')
    .addColumn('instance_id', 'text', (c) => c.notNull())
    .addPrimaryKeyConstraint('audit_rows_key', ['organisation_id', 'id'])
    // A final row of a governed call always has its result and its receipt: an unsigned decision cannot exist.
    .addCheckConstraint(
      'audit_rows_final',
      sql`state = 'intent' or kind = 'event' or (result is not null and row_hash is not null and receipt is not null and finished_at is not null)`,
    )
    .execute();
  // A row has some 2.8 KB, just above PostgreSQL's threshold for compressing values and moving them to a TOAST table. Kept in line, a row
  // costs a third less. SQLite has no such mechanism.
  if (types.bytes === 'bytea') await sql`alter table audit_rows set (toast_tuple_target = 8160)`.execute(db);
  // Recovery reads the intents only; there are few, so the index stays tiny.
  await sql`create index audit_rows_intents on audit_rows (instance_id) where state = 'intent'`.execute(db);

  await db.schema
    .createTable('approvals')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('audit_id', 'text', (c) => c.notNull())
    .addColumn('status', 'text', (c) =>
      c.notNull().check(inList('status', ['pending', 'approved', 'denied', 'expired'])),
    )
    .addColumn('platform_id', 'text', (c) => c.notNull())
    .addColumn('scope', 'text', (c) => c.notNull())
    .addColumn('method', 'text', (c) => c.notNull())
    .addColumn('path', 'text', (c) => c.notNull())
    .addColumn('request_hash', 'text', (c) => c.notNull())
    .addColumn('action', bytes, (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('approvals_key', ['organisation_id', 'id'])
    .execute();
  await db.schema
    .createIndex('approvals_of_agent')
    .on('approvals')
    .columns(['organisation_id', 'agent_id', 'status', 'expires_at'])
    .execute();

  await db.schema
    .createTable('idempotency_keys')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('key_hash', 'text', (c) => c.notNull())
    .addColumn('request_hash', 'text', (c) => c.notNull())
    .addColumn('audit_id', 'text', (c) => c.notNull())
    .addColumn('status', 'integer')
    .addColumn('answer', bytes)
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('idempotency_keys_key', ['organisation_id', 'agent_id', 'key_hash'])
    .execute();
  await db.schema.createIndex('idempotency_keys_expiry').on('idempotency_keys').column('expires_at').execute();

  await db.schema
    .createTable('one_time_tokens')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('token_hash', 'text', (c) => c.notNull())
    .addColumn('kind', 'text', (c) => c.notNull().check(inList('kind', ['bootstrap', 'sign_in'])))
    .addColumn('subject', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('used_at', 'bigint')
    .addPrimaryKeyConstraint('one_time_tokens_key', ['token_hash'])
    .execute();

  await db.schema
    .createTable('signing_keys')
    .addColumn('kid', 'text', (c) => c.primaryKey())
    .addColumn('use', 'text', (c) => c.notNull().check(inList('use', ['evidence', 'issuing', 'root', 'session'])))
    .addColumn('public_jwk', 'text', (c) => c.notNull())
    .addColumn('private_key', bytes)
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('activates_at', 'bigint', (c) => c.notNull())
    .addColumn('retired_at', 'bigint')
    .execute();

  await db.schema
    .createTable('diagnostics')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text', (c) => c.notNull())
    .addColumn('severity', 'text', (c) => c.notNull().check(inList('severity', ['info', 'warning', 'error'])))
    .addColumn('message', 'text', (c) => c.notNull())
    .addColumn('code', 'text')
    .addColumn('platform', 'text')
    .addColumn('endpoint', 'text')
    .addColumn('correlation_id', 'text')
    .addColumn('context', 'text')
    .addColumn('received_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('diagnostics_key', ['organisation_id', 'id'])
    .execute();

  await db.schema
    .createTable('meta')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('value', 'text', (c) => c.notNull())
    .execute();

  await db.schema
    .createTable('instances')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('started_at', 'bigint', (c) => c.notNull())
    .addColumn('seen_at', 'bigint', (c) => c.notNull())
    .execute();
}
