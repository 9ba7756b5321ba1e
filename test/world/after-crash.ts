/** Creates the state that killed processes leave in the store. */
import { expect } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { decideHeldCall } from '../../broker/store/decisions.ts';
import type { Organisation, World } from './world.ts';

/** Approves a held call and leaves the state of a process that died before making it. */
export async function approveAndDie(
  { running }: World,
  { id, owner }: Organisation,
  approvalId: string,
  instanceId = uuidv4(),
): Promise<void> {
  const { db } = running.broker.store;
  const { request_hash, approved_before } = (await findApproval(db, id, approvalId))!;
  const decided = await decideHeldCall(
    db,
    { organisation_id: id, id: approvalId, request_hash, approved_before },
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
