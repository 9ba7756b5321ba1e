/** Sign-in links that an admin makes for other owners. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { signInLink } from '../../auth/sign-in-link.ts';
import type { Uses } from '../../broker.ts';
import { findOwner } from '../../store/organisations.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { ChangeRefused } from '../refused.ts';

/**
 * Makes a link that signs an owner of the same organisation in, once, within 15 minutes. Whoever has it can act as that owner, so making it is
 * recorded; the link itself is not. Throws ChangeRefused, or AuditUnavailable: then there is no link.
 */
export async function makeOwnerLink(
  services: Changing & Uses<'baseUrl'>,
  by: ChangingOwner,
  id: string,
): Promise<{ url: string; expires_at: string; owner: OwnerTable }> {
  const find = async (db: Parameters<typeof findOwner>[0]) => {
    const owner = await findOwner(db, id);
    if (owner?.organisation_id === by.owner.organisation_id) return owner;
    throw new ChangeRefused('not_found', 'The organisation has no such owner.');
  };
  const { email } = await find(services.broker.store.db);
  return await recordInTurn(services, by, { reason: 'owner_link_made', detail: email }, async (tx, note) => {
    const owner = await find(tx);
    note({ owner: owner.id, role: owner.role });
    return { ...(await signInLink(services.broker, owner, { by: by.owner.id, db: tx })), owner };
  });
}
