/** Maps a person who signed in at the identity provider to an existing owner. Creates no owner. */
import type { Broker } from '../broker.ts';
import type { SessionMarks } from '../store/ended-sessions.ts';
import { findIdentifiedOwners, type ProviderIdentity, pinIdentity } from '../store/owner-identities.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import type { OwnerPrincipal } from './principal.ts';

export type InvitedOwner =
  | { kind: 'owner'; owner: OwnerTable; ended: boolean }
  /** `elsewhere`: the person is an owner, but not of the requested organisation. */
  | { kind: 'not_invited'; elsewhere: boolean };

/**
 * Returns the owner in the requested organisation (id or name), or in the oldest one that invited this person. The first sign-in binds the
 * provider's account to the owner, so that the address cannot be claimed by another account. `leftOut`: an organisation (id) that no longer
 * admits the person. `marks`: identify a session that may have been ended.
 */
export async function invitedOwner(
  { store }: Pick<Broker, 'store'>,
  identity: ProviderIdentity,
  { organisation, leftOut, marks }: { organisation?: string | null; leftOut?: string; marks?: SessionMarks } = {},
): Promise<InvitedOwner> {
  // Retried once, in case a concurrent request of the same person bound the account.
  for (let attempt = 0; attempt < 2; attempt++) {
    const all = await findIdentifiedOwners(store.db, identity, marks);
    const found = all.filter(({ owner }) => owner.organisation_id !== leftOut);
    const wanted = organisation
      ? found.find((one) => one.owner.organisation_id === organisation || one.organisationName === organisation)
      : found[0];
    if (!wanted) return { kind: 'not_invited', elsewhere: found.length > 0 };
    const { owner, ended } = wanted;
    // A bearer whose session was ended must not bind the provider's account.
    if (ended) return { kind: 'owner', owner, ended };
    const noted = owner.oidc_subject === null ? await pinIdentity(store.db, owner, identity.subject) : owner;
    if (noted) return { kind: 'owner', owner: noted, ended };
  }
  return { kind: 'not_invited', elsewhere: false };
}

/** Returns the other organisations of an owner who signed in at the identity provider, oldest first. */
export async function otherOrganisations(
  { store }: Pick<Broker, 'store'>,
  { owner, session }: OwnerPrincipal,
): Promise<{ id: string; name: string }[]> {
  if (session.signIn !== 'oidc' || owner.oidc_subject === null) return [];
  const found = await findIdentifiedOwners(store.db, { subject: owner.oidc_subject, email: owner.email });
  return found
    .map(({ owner: { organisation_id: id }, organisationName: name }) => ({ id, name }))
    .filter(({ id }) => id !== owner.organisation_id);
}
