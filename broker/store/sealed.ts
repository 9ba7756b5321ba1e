/** All sealed columns, for re-encrypting them with a new master key. */
import { sql } from 'kysely';
import type { Db } from './store.ts';

/** A sealed column and the columns that identify its row: both are part of the AAD. */
export const SEALED = [
  { table: 'connections', column: 'credential', organisation: 'organisation_id', row: 'id' },
  { table: 'approvals', column: 'action', organisation: 'organisation_id', row: 'id' },
  { table: 'idempotency_keys', column: 'answer', organisation: 'organisation_id', row: 'audit_id' },
  { table: 'signing_keys', column: 'private_key', organisation: null, row: 'kid' },
  { table: 'approvals', column: 'result', organisation: 'organisation_id', row: 'id' },
  { table: 'approvals', column: 'sentence', organisation: 'organisation_id', row: 'id' },
  { table: 'registrations', column: 'private_key', organisation: 'organisation_id', row: 'id' },
  { table: 'secret_keys', column: 'private_key', organisation: null, row: 'kid' },
  { table: 'connections', column: 'refresh_token', organisation: 'organisation_id', row: 'id' },
  { table: 'platform_secrets', column: 'value', organisation: 'organisation_id', row: 'id' },
  { table: 'oauth_flows', column: 'flow', organisation: 'organisation_id', row: 'id' },
  { table: 'upstream_tokens', column: 'token', organisation: 'organisation_id', row: 'id' },
  { table: 'person_keys', column: 'hash_key', organisation: 'organisation_id', row: 'id' },
  { table: 'person_tokens', column: 'credential', organisation: 'organisation_id', row: 'id' },
  { table: 'person_tokens', column: 'refresh_token', organisation: 'organisation_id', row: 'id' },
  { table: 'approvals', column: 'basis', organisation: 'organisation_id', row: 'id' },
  { table: 'standing_approvals', column: 'terms', organisation: 'organisation_id', row: 'id' },
  { table: 'person_consents', column: 'flow', organisation: 'organisation_id', row: 'id' },
  { table: 'notice_channels', column: 'secret', organisation: 'organisation_id', row: 'id' },
  { table: 'push_keys', column: 'private_key', organisation: null, row: 'id' },
  { table: 'log_keys', column: 'private_key', organisation: null, row: 'id' },
  { table: 'audit_sinks', column: 'secret', organisation: 'organisation_id', row: 'id' },
  { table: 'approvals', column: 'asked', organisation: 'organisation_id', row: 'id' },
  { table: 'signing_keys', column: 'authenticator', organisation: null, row: 'kid' },
  { table: 'log_keys', column: 'authenticator', organisation: null, row: 'id' },
  { table: 'token_revocations', column: 'request', organisation: 'organisation_id', row: 'id' },
  { table: 'organisations', column: 'retention_seal', organisation: 'id', row: 'id' },
] as const;

/** Replaces the organisation in the AAD for values of the broker itself. */
export const WHOLE_BROKER = 'broker';

export type SealedColumn = (typeof SEALED)[number];
export type SealedRow = { organisationId: string; rowId: string; sealed: Buffer };

/** Up to `limit` sealed values of a column, in the order of their rows, after row `after`. */
export async function listSealed(db: Db, which: SealedColumn, after: string, limit: number): Promise<SealedRow[]> {
  const organisation = which.organisation ? sql.ref(which.organisation) : sql.lit(WHOLE_BROKER);
  const found = await sql<{ organisation_id: string; row_id: string; sealed: Uint8Array }>`
    select ${organisation} as organisation_id, ${sql.ref(which.row)} as row_id, ${sql.ref(which.column)} as sealed
    from ${sql.table(which.table)}
    where ${sql.ref(which.column)} is not null and ${sql.ref(which.row)} > ${after}
    order by ${sql.ref(which.row)} limit ${limit}`.execute(db);
  return found.rows.map((row) => ({
    organisationId: row.organisation_id,
    rowId: row.row_id,
    sealed: Buffer.from(row.sealed),
  }));
}

/** Replaces a value by its re-wrapped form, if it is still the value that was read (compare and swap). */
export async function replaceSealed(db: Db, which: SealedColumn, row: SealedRow, rewrapped: Buffer): Promise<void> {
  await sql`update ${sql.table(which.table)} set ${sql.ref(which.column)} = ${rewrapped}
    where ${sql.ref(which.row)} = ${row.rowId} and ${sql.ref(which.column)} = ${row.sealed}`.execute(db);
}

/** Whether any sealed value is stored: then no new master key may be created. */
export async function hasSealed(db: Db): Promise<boolean> {
  for (const which of SEALED) if ((await listSealed(db, which, '', 1)).length > 0) return true;
  return false;
}
