/** Releases `Idempotency-Key`s of calls that were in flight in a process that died or was suspended. */
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
  'The broker stopped or stalled before it sent this call, which had an Idempotency-Key. It was not sent, and can be made again with the same key.';

/**
 * Releases the keys of calls that a dead process had not begun, and returns how many. Such a call first gets a final row as not sent: a
 * process that was only suspended, and resumes, can then store neither an intent nor a held call under that id, and sends nothing. A read
 * gets no row: it may have a journal entry, and a second read does no harm. A call that is already on record keeps its key.
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

/** The agent and the organisation of the call of a key. */
type UnsentKey = Omit<StrandedKey, 'is_read' | 'is_recorded' | 'key_hash'>;

/**
 * Records the call of a key as not sent, so that the process that had it in flight cannot make it any more. False: the row could not be
 * stored now, or the call was recorded meanwhile.
 */
export async function closeUnsent(recorder: Recorder, key: UnsentKey, instanceId: string): Promise<boolean> {
  const row = closedRow(rowOfKey(key, instanceId), 'audit_unavailable', NOT_BEGUN);
  try {
    const recorded = await recorder.record<undefined, 'on_record'>({
      row,
      value: undefined,
      // Inserted as a new intent first: writing the final row directly would replace that process's own intent, whose call is being sent.
      together: async (tx) => ((await putNewAuditRow(tx, row)) ? undefined : rollback('on_record')),
    });
    return !(recorded instanceof RolledBack);
  } catch (error) {
    if (error instanceof AuditUnavailable || error instanceof MaybeRecorded) return false;
    throw error;
  }
}

/** Builds a row that has only the agent and the organisation: nothing else is known of the call. */
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
