/** `Idempotency-Key`s of calls that were under way in a process that died, or stood still. */
import type { Uses } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { type AuditRow, putNewAuditRow } from '../store/audit.ts';
import { clearKeyInstance, listStrandedKeys, releaseIdempotencyKey, type StrandedKey } from '../store/idempotency.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { AuditUnavailable, MaybeRecorded } from './audit-unavailable.ts';
import type { Recorder } from './recorder.ts';
import { closedRow, intentRow } from './row.ts';

const BATCH = 100;
const NOT_BEGUN =
  'The broker stopped, or stood still, before this call was made, which had an Idempotency-Key: it was not sent. It can be made again with the same key.';

/**
 * Releases the keys of calls that a dead process had not begun. First such a call gets the final row of one that was not sent: a process
 * that only stood still, and goes on, can store neither an intent nor a held call under that id then, and sends nothing. Of a read there
 * may be a note of its own, and a second one does no harm. What is on record speaks for itself. Returns how many were released.
 */
export async function releaseStrandedKeys({
  broker,
  recorder,
}: Uses<'instanceId' | 'store'> & { recorder: Recorder }): Promise<number> {
  const { db } = broker.store;
  let released = 0;
  for (;;) {
    const stranded = await listStrandedKeys(db, broker.instanceId, BATCH);
    let done = 0;
    for (const key of stranded) {
      if (key.is_recorded) await clearKeyInstance(db, key);
      else if (key.is_read || (await closeUnsent(recorder, key, broker.instanceId))) {
        await releaseIdempotencyKey(db, key);
        released++;
      } else continue;
      done++;
    }
    // The rest cannot be closed now (another process, or an outage). The next sweep retries.
    if (stranded.length < BATCH || done === 0) return released;
  }
}

/** Whose call it was. */
type UnsentKey = Omit<StrandedKey, 'is_read' | 'is_recorded' | 'key_hash'>;

/**
 * Puts the call of a key on record as one that was not sent, so that whoever has it under way cannot make it any more. False: it could not be
 * closed now, or it has just been put on record.
 */
export async function closeUnsent(recorder: Recorder, key: UnsentKey, instanceId: string): Promise<boolean> {
  const row = closedRow(rowOfKey(key, instanceId), 'audit_unavailable', NOT_BEGUN);
  try {
    const recorded = await recorder.record<undefined, 'on_record'>({
      row,
      value: undefined,
      // As an intent of its own first: over one of that process the final row would go, and the call is sent then.
      together: async (tx) => ((await putNewAuditRow(tx, row)) ? undefined : rollback('on_record')),
    });
    return !(recorded instanceof RolledBack);
  } catch (error) {
    if (error instanceof AuditUnavailable || error instanceof MaybeRecorded) return false;
    throw error;
  }
}

/** Nothing is known of the call but whose it was. */
const rowOfKey = (key: UnsentKey, instanceId: string): AuditRow =>
  intentRow({
    auditId: key.audit_id,
    correlationId: uuidv4(),
    createdAt: Number(key.created_at),
    instanceId,
    organisationId: key.organisation_id,
    agent: { id: key.agent_id, agentId: key.agent_public_id, parentAgentId: key.parent_agent_id },
    sessionId: null,
    asked: {},
    path: null,
    droppedHeaders: [],
    pii: null,
    git: undefined,
    decided: undefined,
    connectionId: null,
    approval: undefined,
    refreshUnavailable: false,
  });
