/** Receipts: what the broker signs for every decision (specification, Receipt). */

import { createMembersCanonicalizer, sha256Hex } from '../crypto/canonical.ts';
import { compactJws, type SignCompact } from '../crypto/jws.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import type { JsonObject, MatchedRule } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import type { AuditRow } from '../store/audit.ts';
import { HASHED_COLUMNS } from '../store/audit-columns.ts';
import { formatOf, payloadText } from './receipt-formats.ts';

export const RECEIPT_TYPE = 'svc-receipt+jwt';

const canonicalRow = createMembersCanonicalizer(HASHED_COLUMNS);

/** SHA-256, in hexadecimal, of the canonical JSON (RFC 8785) of a row's hashed columns. */
export const rowHash = (row: AuditRow): string => sha256Hex(canonicalRow(row));

/** The `decision` column, and the `decision` member of a receipt. */
export type RecordedDecision = {
  policy: { id: string; name: string; version: number } | null;
  guardrails: { version: number };
  matched: readonly MatchedRule[];
  evaluated: readonly string[];
};

/**
 * What is recorded of a change: `by`, who made it; `how`, by which credential or path; and what it was about. Never a secret or the
 * owner's words. `console`: an owner (uuid) with a browser session. `api`: an owner with a bearer. `local`: `by` is `operator`, the
 * command line with its own credential. `token`: a one-time token that an owner handed out; `by` is the agent itself (its agent id) or,
 * for a secret that was delivered, the owner who authorised it. `broker`: a rule of the organisation. `start`: `by` is `operator`, the
 * configuration at start (`serve --config`, the sandbox, a first start). `agent`: a parent (its agent id) changed its child. `person`: the
 * person for whom agents act, by the random id. `time`: a lifetime expired.
 */
export type OwnersChange = {
  by: string;
  how: 'console' | 'api' | 'local' | 'token' | 'broker' | 'start' | 'agent' | 'person' | 'pipeline' | 'time';
} & JsonObject;

/**
 * Reasons of the events that have no receipt: breaker transitions and connect events (specification, Audit receipts). Their rows are
 * hashed all the same. Verifiers of exports, also those of earlier versions, contain this list.
 */
export const REASONS_WITHOUT_RECEIPT: ReadonlySet<string> = new Set([
  'breaker_opened',
  'breaker_closed',
  'connection_connected',
  'connection_disconnected',
]);

/**
 * Hashes a final row in place, and signs it unless it is an event that has no receipt. All other columns must have their final values.
 * `issuer`: the broker's DID.
 */
export function signRow(row: AuditRow, key: SigningKey, sign: SignCompact, issuer: string): void {
  row.row_hash = rowHash(row);
  // Only an intent is owned by a process; a final row need not store its 36 bytes.
  row.instance_id = '';
  if (row.kind === 'event' && REASONS_WITHOUT_RECEIPT.has(row.reason)) return;
  const format = formatOf(row);
  const payload = present(payloadText(format, row, issuer), 'receipt format');
  const jws = sign(key, { typ: RECEIPT_TYPE }, payload);
  row.receipt_kid = key.kid;
  row.receipt = jws.slice(jws.lastIndexOf('.') + 1);
  row.receipt_format = format;
  row.receipt_issuer = issuer;
}

/**
 * Rebuilds the receipt of a row, a compact JWS, byte for byte as it was signed; null when the row has none. If the row was altered in
 * the database, the result does not verify.
 */
export function receiptOf(row: AuditRow): string | null {
  const { id, receipt, receipt_format: format, receipt_kid: kid, receipt_issuer: issuer } = row;
  if (receipt === null || format === null) return receipt;
  const payload = issuer === null ? undefined : payloadText(format, row, issuer);
  if (payload === undefined || kid === null)
    throw new Error(
      `The receipt of audit row ${id} has format ${format}, which this version of agent-broker does not know: read it with the version that wrote it, or a later one.`,
    );
  return compactJws({ kid }, { typ: RECEIPT_TYPE }, payload, receipt);
}
