/** Lists, renames and removes an owner's own passkeys. */
import { type Changing, type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { listPasskeys as listStored, removePasskey as remove, renamePasskey as rename } from '../../store/passkeys.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import { passkeyFacts } from './enrolment.ts';
import { transportsOf } from './options.ts';

type PasskeyOwner = Pick<OwnerTable, 'id' | 'organisation_id'>;

const refOf = ({ id, organisation_id }: PasskeyOwner) => ({ organisationId: organisation_id, ownerId: id });

const readPasskey = (row: PasskeyTable) => ({ ...row, transports: transportsOf(row) });
export type ReadPasskey = ReturnType<typeof readPasskey>;

/** Lists the owner's passkeys, oldest first, disabled ones included. */
export async function listPasskeys({ store }: Pick<Broker, 'store'>, owner: PasskeyOwner): Promise<ReadPasskey[]> {
  return (await listStored(store.db, refOf(owner))).map(readPasskey);
}

/** Renames a passkey. Returns undefined when the owner has no such passkey. Throws AuditUnavailable: then it keeps its name. */
export async function renamePasskey(
  services: Changing,
  by: ChangingOwner,
  id: string,
  deviceName: string,
): Promise<ReadPasskey | undefined> {
  const renamed = await recordChange(
    services,
    by,
    { reason: 'passkey_renamed', detail: deviceName },
    async (tx, note) => {
      const found = await rename(tx, refOf(by.owner), id, deviceName);
      if (!found) return rollback('unknown');
      note(passkeyFacts(found));
      return readPasskey(found);
    },
  );
  return renamed instanceof RolledBack ? undefined : renamed;
}

/**
 * Removes a passkey. It takes effect immediately; earlier decisions made with it stand. Returns false when the owner has no such passkey. Throws
 * AuditUnavailable.
 */
export async function removePasskey(services: Changing, by: ChangingOwner, id: string): Promise<boolean> {
  const removed = await recordChange(services, by, { reason: 'passkey_removed' }, async (tx, note) => {
    const found = await remove(tx, refOf(by.owner), id);
    if (!found) return rollback('unknown');
    note(passkeyFacts(found));
    return true;
  });
  return !(removed instanceof RolledBack);
}
