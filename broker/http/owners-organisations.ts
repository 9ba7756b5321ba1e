/** The organisation of a signed-in owner, and the others of the same person, by id and name. */
import { z } from 'zod';
import { readOrganisation } from '../admin/organisations/organisation.ts';
import { otherOrganisations } from '../auth/invited-owner.ts';
import type { OwnerPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';

export const OrganisationNamed = z.object({ id: z.guid(), name: z.string() });

/** Returns the organisation of the session, and the others of who signed in at an identity provider, oldest first. */
export async function organisationsOf(broker: Pick<Broker, 'store'>, who: OwnerPrincipal) {
  const { id, name } = await readOrganisation(broker.store.db, who.owner.organisation_id);
  return { organisation: { id, name }, organisations: await otherOrganisations(broker, who) };
}
