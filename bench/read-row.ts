/** The audit row of a read, for measurements of rows alone. */
import { eventRow } from '../broker/audit/event-row.ts';
import { uuidv4, uuidv7 } from '../broker/crypto/ids.ts';
import type { AuditRow } from '../broker/store/audit.ts';

/** Returns the row of a governed read, complete except for its hash and receipt. */
export function readRow(organisationId: string): AuditRow {
  const now = Date.now();
  return {
    ...eventRow({
      auditId: uuidv7(now),
      correlationId: uuidv4(),
      createdAt: now,
      instanceId: '',
      organisationId,
      agent: { id: uuidv4(), agent_id: 'agt_0123456789abcdefghij' },
      reason: 'allowed_by_policy',
      platform: 'demo',
      connectionId: uuidv4(),
      scope: 'demo:read',
      method: 'GET',
      path: '/items/1',
      upstreamStatus: 200,
    }),
    kind: 'action',
    result: 'allowed',
    finished_at: now,
    decision:
      '{"policy":{"id":"247de97e-1407-42b1-a986-78b796cb0544","name":"default","version":1},"guardrails":{"version":0},"matched":[{"source":"policy","name":"reads","effect":"allow"}],"evaluated":["status","grant","ttl","breaker","child_liveness","guardrails","policy"]}',
  };
}
