/** What becomes of a passkey whose signature counter did not increase, or cannot be compared with all that it had. */
import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import { type AuditEvent, eventRow } from '../audit/event-row.ts';
import type { Recording } from '../audit/recorder.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { clearRestoredCounter, disableRegressed } from '../store/passkeys.ts';
import type { PasskeyTable } from '../store/tables/approvals.ts';
import { RolledBack, rollback } from '../store/transaction.ts';

/**
 * Permanently disables a passkey that seems to be cloned (WebAuthn section 7.2, step 22), although what it was used for was rolled
 * back. `about`: the held call, if it was one. False: the counter is not the reason of the failure. The agent's breaker is not
 * affected. Throws AuditUnavailable: it was not disabled.
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

/**
 * Puts on record that a passkey was used for the first time since the store was restored: its counter is higher than that of the backup, so it was
 * taken (WebAuthn section 7.2), and whether it is one that a copy has had cannot be told. To be called once it was used; what cannot be recorded now
 * is with the next use.
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
    'A passkey was used for the first time since the store was restored. Its signature counter is higher than in the backup; whether a copy of it was used in between cannot be told.';
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
