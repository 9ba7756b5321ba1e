/** Handles a passkey whose signature counter did not increase, or cannot be compared with its full history. */
import { AuditUnavailable } from '../../audit/audit-unavailable.ts';
import { type AuditEvent, eventRow } from '../../audit/event-row.ts';
import type { Recording } from '../../audit/recorder.ts';
import { uuidv7 } from '../../crypto/ids.ts';
import { clearRestoredCounter, disableRegressed } from '../../store/passkeys.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import type { Decided } from '../decide.ts';

/**
 * Permanently disables a passkey that seems to be cloned (WebAuthn section 7.2, step 22), although the operation it was used for was rolled back.
 * `about`: the held call, if it was one. Returns false when the counter is not the reason of the failure. The agent's breaker is not affected. When
 * it throws AuditUnavailable, the passkey was not disabled.
 */
export async function disableCloned(
  { broker, recorder }: Recording,
  passkey: PasskeyTable,
  counter: number,
  about: Pick<AuditEvent, 'agent' | 'approvalId'>,
  { correlationId }: { correlationId: string },
): Promise<boolean> {
  const detail = 'The signature counter of a passkey did not increase: it may have been cloned, and was disabled.';
  const recorded = await recorder.record<undefined, 'not_regressed'>({
    row: counterRow(broker, passkey, { reason: 'passkey_counter_regression', detail, correlationId, ...about }),
    value: undefined,
    together: async (tx) => {
      const disabled = await disableRegressed(tx, passkey, counter);
      if (!disabled) return rollback('not_regressed');
      return { flags: { passkey: counterFacts(disabled, disabled.counter, counter) } };
    },
  });
  if (recorded instanceof RolledBack) return false;
  broker.log.warn({ security: true, passkey: passkey.id, owner: passkey.owner_id }, detail);
  return true;
}

/** Whether a decision by passkey was recorded, and with it the use of the passkey. */
export const isUsed = (decided: Decided | { kind: 'undone' }): boolean =>
  decided.kind === 'decided' || (decided.kind === 'approved_in_part' && decided.auditId !== undefined);

/**
 * Records that a passkey was used for the first time since the store was restored. Its counter is higher than the backup's, so it was accepted
 * (WebAuthn section 7.2), but a copy may have reached that value before. To be called after the use; a failure to record is made up for at the next
 * use.
 */
export async function noteRestoredCounter(
  { broker, recorder }: Recording,
  passkey: PasskeyTable,
  counter: number,
  about: Pick<AuditEvent, 'agent' | 'approvalId'>,
  { correlationId }: { correlationId: string },
): Promise<void> {
  const { restored_counter: stored } = passkey;
  if (stored === null) return;
  const detail =
    'A passkey was used for the first time since the store was restored. Its signature counter is higher than in the backup; whether a copy of it was used in between is unknown.';
  try {
    await recorder.record<undefined, 'noted'>({
      row: counterRow(broker, passkey, { reason: 'passkey_counter_restored', detail, correlationId, ...about }),
      value: undefined,
      together: async (tx) => {
        if (!(await clearRestoredCounter(tx, passkey))) return rollback('noted');
        return { flags: { passkey: counterFacts(passkey, stored, counter) } };
      },
    });
  } catch (error) {
    if (!(error instanceof AuditUnavailable)) throw error;
  }
}

const counterRow = (
  broker: Recording['broker'],
  passkey: PasskeyTable,
  event: Pick<AuditEvent, 'reason' | 'detail' | 'correlationId' | 'agent' | 'approvalId'>,
) => {
  const now = broker.clock();
  return eventRow({
    auditId: uuidv7(now),
    createdAt: now,
    instanceId: broker.instanceId,
    organisationId: passkey.organisation_id,
    ...event,
  });
};

const counterFacts = (
  { id, owner_id: owner, credential_id, device_name }: PasskeyTable,
  stored_counter: number,
  reported_counter: number,
) => ({ id, owner, credential_id, device_name, stored_counter, reported_counter });
