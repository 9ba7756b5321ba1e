import { uuidv4, uuidv7 } from '../../broker/crypto/ids.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { findAuditRows } from '../../broker/store/audit-search.ts';
import type { Db } from '../../broker/store/store.ts';

/** Returns an audit row of a change that is about to be made, with these differences. */
export function auditRow(different: Partial<AuditRow> = {}): AuditRow {
  const now = Date.now();
  return {
    organisation_id: 'acme',
    id: uuidv7(now),
    state: 'intent',
    kind: 'action',
    created_at: now,
    finished_at: null,
    agent_id: uuidv4(),
    agent_public_id: 'agt_0123456789abcdefghij',
    platform_id: 'demo',
    connection_id: null,
    scope: 'demo:write',
    method: 'PATCH',
    path: '/items/1',
    result: null,
    reason: 'approved',
    detail: null,
    decision: null,
    approval_id: null,
    session_id: null,
    agent_reason: null,
    violating: null,
    upstream_status: null,
    flags: null,
    pii: null,
    correlation_id: uuidv4(),
    row_hash: null,
    receipt_kid: null,
    receipt: null,
    receipt_format: null,
    receipt_issuer: null,
    instance_id: uuidv4(),
    ...different,
  };
}

/** Lists an organisation's rows, newest first. */
export async function listAuditRows(db: Db, organisationId: string, page: { limit: number }): Promise<AuditRow[]> {
  return (await findAuditRows(db, organisationId, {}, { order: 'newest_first', ...page })).rows;
}
