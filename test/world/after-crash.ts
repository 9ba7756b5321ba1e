/** What processes that were killed leave in the store. */
import { createPublicKey } from 'node:crypto';
import { expect } from 'vitest';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { readConfig } from '../../broker/config.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { verifyCompact } from '../../broker/crypto/jws.ts';
import { makeLog } from '../../broker/log.ts';
import { openStore } from '../../broker/start.ts';
import { decideHeldCall } from '../../broker/store/approvals.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import type { ApprovalTable } from '../../broker/store/schema.ts';
import type { Organisation, World } from './world.ts';

/** All rows and approvals of a store that no process has open. */
export async function readAll(
  environment: Record<string, string>,
): Promise<{ rows: AuditRow[]; approvals: ApprovalTable[] }> {
  const store = await openStore(readConfig(environment), makeLog('silent'));
  try {
    const rows = await store.db.selectFrom('audit_rows').selectAll().execute();
    return { rows, approvals: await store.db.selectFrom('approvals').selectAll().execute() };
  } finally {
    await store.close();
  }
}

/** I3: each row is final, and its receipt verifies against the published keys and says what is stored. */
export function checkReceipts(rows: readonly AuditRow[], published: { keys: { kid: string }[] }): void {
  const keys = new Map(published.keys.map((jwk) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]));
  for (const row of rows) {
    expect(row.state, row.id).toBe('final');
    const verified = verifyCompact(receiptOf(row) ?? '', keys, { typ: RECEIPT_TYPE });
    expect(verified, row.id).toMatchObject({ ok: true, payload: { jti: row.id, row_hash: rowHash(row) } });
  }
}

/** A held call is approved, as a process leaves it that dies before it makes the call. */
export async function approveAndDie(
  { running }: World,
  { id, owner }: Organisation,
  approvalId: string,
  instanceId = uuidv4(),
): Promise<void> {
  const decided = await decideHeldCall(
    running.broker.store.db,
    { organisation_id: id, id: approvalId },
    {
      status: 'approved',
      at: Date.now(),
      by: owner.id,
      how: 'api',
      with: null,
      note: null,
      auditId: uuidv4(),
      instanceId,
    },
  );
  expect(decided).toBeDefined();
}
