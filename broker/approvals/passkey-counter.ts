/** What becomes of a passkey whose signature counter did not increase. */
import { type AuditEvent, eventRow } from '../audit/event-row.ts';
import type { Recording } from '../audit/recorder.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { disableRegressed } from '../store/passkeys.ts';
import type { PasskeyTable } from '../store/schema.ts';
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
  const now = broker.clock();
  const detail = 'The signature counter of a passkey did not increase: it may have been cloned, and was disabled.';
  const row = eventRow({
    auditId: uuidv7(now),
    correlationId,
    createdAt: now,
    instanceId: broker.instanceId,
    organisationId: passkey.organisation_id,
    reason: 'passkey_counter_regression',
    detail,
    ...about,
  });
  const recorded = await recorder.record<undefined, 'not_regressed'>({
    row,
    value: undefined,
    together: async (tx) => {
      const disabled = await disableRegressed(tx, passkey, counter);
      if (!disabled) return rollback('not_regressed');
      const { id, owner_id: owner, credential_id, device_name, counter: stored_counter } = disabled;
      const passkeyFacts = { id, owner, credential_id, device_name, stored_counter, reported_counter: counter };
      return { flags: { passkey: passkeyFacts } };
    },
  });
  if (recorded instanceof RolledBack) return false;
  broker.log.warn({ security: true, passkey: passkey.id, owner: passkey.owner_id }, detail);
  return true;
}
