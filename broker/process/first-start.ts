/** What an empty store begins with: one organisation, one owner, the policy `default`. */

import { operatorAtStart, recordChange } from '../audit/record-change.ts';
import { signInLink } from '../auth/sign-in-link.ts';
import type { Broker } from '../broker.ts';
import { createOrganisation } from '../config-plan/first-start.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { Services } from '../services.ts';
import { listOrganisations, listOwners } from '../store/organisations.ts';

const ORGANISATION = 'home';
const OWNER = 'owner@agent-broker.local';

/** Makes the first organisation in an empty store, on record. Answers the id of the oldest one. */
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
    // Another replica that starts at the same moment was first.
    const [other] = await listOrganisations(store.db);
    if (other) return other.id;
    throw error;
  }
}

/** A sign-in link of the organisation's first admin; the console's address when there is none. */
export async function firstAdminLink(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store'>,
  organisationId: string,
): Promise<string> {
  const admin = (await listOwners(broker.store.db, organisationId)).find((owner) => owner.role === 'admin');
  return admin ? (await signInLink(broker, admin)).url : `${broker.baseUrl}/console`;
}
