/** What an empty store begins with: one organisation, one owner, the policy `default`. */
import type { Broker } from './broker.ts';
import { createOrganisation } from './governance/first-start.ts';
import { signInLink } from './identity/sign-in-link.ts';
import { listOrganisations, listOwners } from './store/organisations.ts';

const ORGANISATION = 'home';
const OWNER = 'owner@agent-broker.local';

/** Makes the first organisation in an empty store. Answers the id of the oldest one. */
export async function firstStart(broker: Broker): Promise<string> {
  const [first] = await listOrganisations(broker.store.db);
  if (first) return first.id;
  try {
    const made = await createOrganisation(broker, { name: ORGANISATION, ownerEmail: OWNER }, broker.clock());
    return made.organisation.id;
  } catch (error) {
    // Another replica that starts at the same moment was first.
    const [other] = await listOrganisations(broker.store.db);
    if (other) return other.id;
    throw error;
  }
}

/** A sign-in link of the organisation's first admin; with an identity provider, where everybody signs in. */
export async function firstAdminLink(broker: Broker, organisationId: string): Promise<string> {
  if (broker.config.oidc) return `${broker.baseUrl}/console/sign-in`;
  const admin = (await listOwners(broker.store.db, organisationId)).find((owner) => owner.role === 'admin');
  return admin ? (await signInLink(broker, admin)).url : `${broker.baseUrl}/console`;
}
