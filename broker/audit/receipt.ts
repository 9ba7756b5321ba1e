/** Receipts: what the broker signs for every decision (specification, Receipt). */

import { createRowCanonicalizer, sha256Hex } from '../crypto/canonical.ts';
import type { SignCompact } from '../crypto/jws.ts';
import type { SigningKey } from '../crypto/key-set.ts';
import type { JsonObject, MatchedRule } from '../policy/facts.ts';
import type { AuditRow } from '../store/audit.ts';
import type { ApprovalProvenance } from './approval-state.ts';
import { NOT_LOOKED_AT } from './pii.ts';

export const RECEIPT_TYPE = 'svc-receipt+jwt';

/** The columns that the row hash covers: all that an auditor is shown; not the hash, the receipt and the process. */
export const HASHED_COLUMNS = [
  'organisation_id',
  'id',
  'kind',
  'created_at',
  'finished_at',
  'agent_id',
  'agent_public_id',
  'platform_id',
  'connection_id',
  'scope',
  'method',
  'path',
  'result',
  'reason',
  'detail',
  'decision',
  'approval_id',
  'session_id',
  'agent_reason',
  'violating',
  'upstream_status',
  'flags',
  'pii',
  'correlation_id',
] as const satisfies readonly (keyof AuditRow)[];

const canonicalRow = createRowCanonicalizer(HASHED_COLUMNS);

/** SHA-256, in hexadecimal, of the canonical JSON (RFC 8785) of a row's hashed columns. */
export function rowHash(row: AuditRow): string {
  // Written out, because an object that grows member by member is half the cost of the hash.
  const hashed: Pick<AuditRow, (typeof HASHED_COLUMNS)[number]> = {
    organisation_id: row.organisation_id,
    id: row.id,
    kind: row.kind,
    created_at: row.created_at,
    finished_at: row.finished_at,
    agent_id: row.agent_id,
    agent_public_id: row.agent_public_id,
    platform_id: row.platform_id,
    connection_id: row.connection_id,
    scope: row.scope,
    method: row.method,
    path: row.path,
    result: row.result,
    reason: row.reason,
    detail: row.detail,
    decision: row.decision,
    approval_id: row.approval_id,
    session_id: row.session_id,
    agent_reason: row.agent_reason,
    violating: row.violating,
    upstream_status: row.upstream_status,
    flags: row.flags,
    pii: row.pii,
    correlation_id: row.correlation_id,
  };
  return sha256Hex(canonicalRow(hashed));
}

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
 * `agent`: a parent, by its agent id, of its child; `time`: nobody, a lifetime was over. Never a secret, nor the owner's words.
 */
export type OwnersChange = {
  by: string;
  how: 'console' | 'api' | 'local' | 'token' | 'broker' | 'start' | 'agent' | 'time';
} & JsonObject;

/** Who signs, as receipts name it: the broker, and what stands before an agent's id. */
export type ReceiptIssuer = { did: string; didOfAgents: string };

export const receiptIssuer = (did: string): ReceiptIssuer => ({ did, didOfAgents: `${did}:agents:` });

/**
 * The payload of a final row's receipt. It never carries bodies, the query, addresses (of people or machines), or the
 * agent's own words: those only as a hash, keyed with the row's random id, because a short sentence can be guessed.
 */
export function receiptPayload(row: AuditRow, issuer: ReceiptIssuer): Record<string, unknown> {
  return {
    iss: issuer.did,
    jti: row.id,
    iat: Math.floor((row.finished_at ?? row.created_at) / 1000),
    sub: row.agent_public_id ? `${issuer.didOfAgents}${row.agent_public_id}` : null,
    agent: row.agent_public_id,
    organisation: row.organisation_id,
    platform: row.platform_id,
    connection: row.connection_id,
    scope: row.scope,
    method: row.method,
    path: row.path,
    ...(row.kind === 'event' && { kind: row.kind }),
    ...changeIn(row),
    result: row.result,
    reason: row.reason,
    decision: row.decision === null ? null : JSON.parse(row.decision),
    approval: row.approval_id === null ? null : { approval_id: row.approval_id, ...provenanceIn(row) },
    session_id: row.session_id,
    pii: row.pii === null ? NOT_LOOKED_AT : JSON.parse(row.pii),
    upstream_status: row.upstream_status,
    ...(row.agent_reason !== null && { agent_reason_hash: sha256Hex(`${row.id}\n${row.agent_reason}`) }),
    row_hash: row.row_hash,
  };
}

/** Who approved: on the rows of a decision and of a replay. */
function provenanceIn({ flags }: AuditRow): Partial<ApprovalProvenance> {
  return flags === null ? {} : ((JSON.parse(flags) as { approval?: ApprovalProvenance }).approval ?? {});
}

/** What an owner changed: on the rows of changes. */
function changeIn({ kind, flags }: AuditRow): { change?: OwnersChange } {
  const change = kind === 'event' && flags !== null && (JSON.parse(flags) as { change?: OwnersChange }).change;
  return change ? { change } : {};
}

/**
 * Reasons of the events that have no receipt: breaker transitions and connect events (specification, Audit receipts). Their
 * rows have a hash all the same.
 */
const REASONS_WITHOUT_RECEIPT: ReadonlySet<string> = new Set([
  'breaker_opened',
  'breaker_closed',
  'connection_connected',
  'connection_disconnected',
]);

/** Hashes a row that is final but for that, in place, and signs it unless it is of an event that has no receipt. */
export function signRow(row: AuditRow, key: SigningKey, sign: SignCompact, issuer: ReceiptIssuer): void {
  row.row_hash = rowHash(row);
  if (row.kind === 'event' && REASONS_WITHOUT_RECEIPT.has(row.reason)) return;
  row.receipt_kid = key.kid;
  row.receipt = sign(key, { typ: RECEIPT_TYPE }, JSON.stringify(receiptPayload(row, issuer)));
}
