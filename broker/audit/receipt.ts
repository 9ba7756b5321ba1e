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
 * Of a change: who made it (the owner's uuid, or `operator` with the command line's own credential), with a browser's
 * session or a bearer, and what it was about. `token`: with a one-time token that an owner let somebody have; the agent
 * itself, by its agent id, or, of a secret that came, the owner who authorised it. `broker`: by a rule of the organisation.
 * `start`: `operator`, by what the process was started with (`serve --config`, the sandbox, a first start).
 * `agent`: a parent, by its agent id, of its child; `person`: whoever agents act for, by the random id; `time`: nobody, a lifetime was over. Never a secret, nor the owner's words.
 */
export type OwnersChange = {
  by: string;
  how: 'console' | 'api' | 'local' | 'token' | 'broker' | 'start' | 'agent' | 'person' | 'pipeline' | 'time';
} & JsonObject;

/**
 * Reasons of the events that have no receipt: breaker transitions and connect events (specification, Audit receipts). Their
 * rows have a hash all the same. Verifiers of exports, also those of earlier versions, know this list.
 */
export const REASONS_WITHOUT_RECEIPT: ReadonlySet<string> = new Set([
  'breaker_opened',
  'breaker_closed',
  'connection_connected',
  'connection_disconnected',
]);

/**
 * Hashes a row that is final but for that, in place, and signs it unless it is of an event that has no receipt.
 * `issuer`: the broker's DID.
 */
export function signRow(row: AuditRow, key: SigningKey, sign: SignCompact, issuer: string): void {
  row.row_hash = rowHash(row);
  // A process holds an intent only: what is final has no use for 36 bytes that name one.
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
 * The receipt of a row, a compact JWS, byte for byte as it was signed; null when it has none. Of a row that was changed
 * behind the broker's back comes one that does not verify.
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
