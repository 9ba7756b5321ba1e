/**
 * The columns of an audit row in the order in which rows are written, with the type of each and whether the row hash covers it. The hash
 * covers everything that is shown to auditors. The row's type, the statements and the hash are derived from this list; migrations create
 * the table.
 */

/** `value` exists only for its type. */
type Column<Value> = { readonly isHashed: boolean; readonly value?: Value };

const hashed = <Value>(): Column<Value> => ({ isHashed: true });
const unhashed = <Value>(): Column<Value> => ({ isHashed: false });

const COLUMNS = {
  organisation_id: hashed<string>(),
  id: hashed<string>(),
  /** `intent`: a mutating call may be in flight; `final`: the row is immutable. */
  state: unhashed<'intent' | 'final'>(),
  kind: hashed<'action' | 'event'>(),
  created_at: hashed<number>(),
  finished_at: hashed<number | null>(),
  agent_id: hashed<string | null>(),
  agent_public_id: hashed<string | null>(),
  platform_id: hashed<string | null>(),
  connection_id: hashed<string | null>(),
  scope: hashed<string | null>(),
  method: hashed<string | null>(),
  path: hashed<string | null>(),
  result: hashed<'allowed' | 'held' | 'denied' | 'blocked' | 'errored' | null>(),
  reason: hashed<string>(),
  detail: hashed<string | null>(),
  /** JSON: policy, guardrails, matched rules, evaluated. */
  decision: hashed<string | null>(),
  approval_id: hashed<string | null>(),
  session_id: hashed<string | null>(),
  agent_reason: hashed<string | null>(),
  violating: hashed<string | null>(),
  upstream_status: hashed<number | null>(),
  /** JSON: what was dropped, redacted, truncated. */
  flags: hashed<string | null>(),
  pii: hashed<string | null>(),
  correlation_id: hashed<string>(),
  row_hash: unhashed<string | null>(),
  receipt_kid: unhashed<string | null>(),
  /** A compact JWS where `receipt_format` is null, as in rows of earlier versions; otherwise its signature alone. */
  receipt: unhashed<string | null>(),
  /** The format that rebuilds the rest of the receipt from this row, and the `iss` of the receipt. */
  receipt_format: unhashed<number | null>(),
  receipt_issuer: unhashed<string | null>(),
  /** The process that owns the intent; empty once the row is signed. */
  instance_id: unhashed<string>(),
};

export type AuditTable = {
  [Name in keyof typeof COLUMNS]: (typeof COLUMNS)[Name] extends Column<infer Value> ? Value : never;
};

/** All columns, in the order in which rows are written. */
export const AUDIT_COLUMNS = Object.keys(COLUMNS) as readonly (keyof AuditTable)[];

export const HASHED_COLUMNS = AUDIT_COLUMNS.filter((name) => COLUMNS[name].isHashed);
