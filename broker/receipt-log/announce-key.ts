/** Records in the audit that a receipt log is signed by a new key. */
import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';

/** `vkey`: verifier key of the new key, which signs the first checkpoint that covers this event. */
export async function announceLogKey(changing: Changing, organisationId: string, vkey: string): Promise<void> {
  await recordChange(changing, byBroker(organisationId), { reason: 'log_key_announced' }, async (_tx, note) =>
    note({ vkey }),
  );
}
