/** Puts on record that a receipt log is signed by another key. */
import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';

/** `vkey`: of the new key, which signs the first checkpoint that covers this event. */
export async function announceLogKey(changing: Changing, organisationId: string, vkey: string): Promise<void> {
  await recordChange(changing, byBroker(organisationId), { reason: 'log_key_announced' }, async (_tx, note) =>
    note({ vkey }),
  );
}
