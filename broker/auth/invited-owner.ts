/** From somebody whom the identity provider signed in to the owner that somebody is here. Nobody is made an owner by it. */
import type { Broker } from '../broker.ts';
import { findIdentifiedOwners, type ProviderIdentity, pinIdentity } from '../store/owner-identities.ts';
import type { OwnerTable } from '../store/schema.ts';

export type InvitedOwner =
  | { kind: 'owner'; owner: OwnerTable; ended: boolean }
  /** `elsewhere`: an owner, but not of the organisation that was asked for. */
  | { kind: 'not_invited'; elsewhere: boolean };

/**
 * The owner of the organisation that is asked for, by id or name; else of the oldest one that invited this person. The
 * first time the account is noted, so that the address is nobody else's from then on. `sessionId`: of a session that may
 * have been signed out.
 */
export async function invitedOwner(
  { store }: Pick<Broker, 'store'>,
  identity: ProviderIdentity,
  { organisation, sessionId }: { organisation?: string | null; sessionId?: string } = {},
): Promise<InvitedOwner> {
  // A second look, for the case that another request of the same person noted the account at the same moment.
  for (let look = 0; look < 2; look++) {
    const found = await findIdentifiedOwners(store.db, identity, sessionId);
    const wanted = organisation
      ? found.find((one) => one.owner.organisation_id === organisation || one.organisationName === organisation)
      : found[0];
    if (!wanted) return { kind: 'not_invited', elsewhere: found.length > 0 };
    const { owner, ended } = wanted;
    const noted = owner.oidc_subject === null ? await pinIdentity(store.db, owner, identity.subject) : owner;
    if (noted) return { kind: 'owner', owner: noted, ended };
  }
  return { kind: 'not_invited', elsewhere: false };
}
