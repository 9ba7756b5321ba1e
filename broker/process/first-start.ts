/** Initialises an empty store: one organisation, one owner, the policy `default`. */

import { createOrganisation } from '../admin/organisations/organisations.ts';
import { operatorAtStart, recordChange } from '../audit/record-change.ts';
import { signInLink } from '../auth/sign-in-link.ts';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Services } from '../services.ts';
import { listOrganisations, listOwners } from '../store/organisations.ts';

const ORGANISATION = 'home';
const OWNER = 'owner@agent-broker.local';

/** Creates the first organisation in an empty store, recorded in the audit. Returns the id of the oldest organisation. */
export async function firstStart(services: Services): Promise<string> {
  const { store, clock } = services.broker;
  const [first] = await listOrganisations(store.db);
  if (first) return first.id;
  const id = uuidv4();
  try {
    await recordChange(services, operatorAtStart(id), { reason: 'organisation_created' }, async (db, note) => {
      const { owner } = await createOrganisation(db, { id, name: ORGANISATION, ownerEmail: OWNER }, clock());
      note({ owner: owner.id, role: owner.role });
    });
    return id;
  } catch (error) {
    // Another replica that starts concurrently may have been first.
    const [other] = await listOrganisations(store.db);
    if (other) return other.id;
    throw error;
  }
}

/** Returns a sign-in link for the organisation's first admin; the console's address when there is no admin. */
export async function firstAdminLink(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store'>,
  organisationId: string,
): Promise<string> {
  const admin = (await listOwners(broker.store.db, organisationId)).find((owner) => owner.role === 'admin');
  return admin ? (await signInLink(broker, admin)).url : `${broker.baseUrl}/console`;
}
