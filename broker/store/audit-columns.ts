/**
 * The columns of an audit row, once, in the order in which rows are written: what each of them holds, and whether the row
 * hash covers it, as it does all that an auditor is shown. The row's type, the statements and the hash follow from this
 * list; broker/store/migrations/ makes the table.
 */

/** `value` is there for its type alone. */
type Column<Value> = { readonly isHashed: boolean; readonly value?: Value };

const hashed = <Value>(): Column<Value> => ({ isHashed: true });
const unhashed = <Value>(): Column<Value> => ({ isHashed: false });

const COLUMNS = {
  organisation_id: hashed<string>(),
  id: hashed<string>(),
  /** `intent`: a mutating call may be under way; `final`: nothing of the row changes any more. */
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
  /** A compact JWS where `receipt_format` is null, as rows of earlier versions have it; otherwise its signature alone. */
  receipt: unhashed<string | null>(),
  /** By which serialiser the rest of the receipt follows from this row, and with which `iss`. */
  receipt_format: unhashed<number | null>(),
  receipt_issuer: unhashed<string | null>(),
  /** The process that holds the intent, empty once the row is signed. */
  instance_id: unhashed<string>(),
};

export type AuditTable = {
  [Name in keyof typeof COLUMNS]: (typeof COLUMNS)[Name] extends Column<infer Value> ? Value : never;
};

/** Every column, in the order in which rows are written. */
export const AUDIT_COLUMNS = Object.keys(COLUMNS) as readonly (keyof AuditTable)[];

export const HASHED_COLUMNS = AUDIT_COLUMNS.filter((name) => COLUMNS[name].isHashed);
