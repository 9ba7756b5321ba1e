/** Maps a person who signed in at the identity provider to an existing owner. Creates no owner. */
import type { Broker } from '../broker.ts';
import type { SessionMarks } from '../store/ended-sessions.ts';
import {
  findIdentifiedOwners,
  type IdentifiedOwner,
  type ProviderIdentity,
  pinIdentity,
} from '../store/owner-identities.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import type { OwnerPrincipal } from './principal.ts';

export type InvitedOwner =
  | { kind: 'owner'; owner: OwnerTable; ended: boolean }
  /** `elsewhere`: the person is an owner, but not of the requested organisation. */
  | { kind: 'not_invited'; elsewhere: boolean };

/**
 * Returns the owner in the requested organisation (id or name), or else in the oldest one to which this person has signed in before, or else in the
 * oldest one that invited this person. The first sign-in binds the provider's account to the owner, so that the address cannot be claimed by another
 * account. `leftOut`: an organisation (id) that no longer admits the person. `marks`: identify a session that may have been ended.
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
    const wanted = organisation ? organisationOf(found, organisation) : usualOf(found);
    if (!wanted) return { kind: 'not_invited', elsewhere: found.length > 0 };
    const { owner, ended } = wanted;
    // A bearer whose session was ended must not bind the provider's account.
    if (ended) return { kind: 'owner', owner, ended };
    const noted = owner.oidc_subject === null ? await pinIdentity(store.db, owner, identity.subject) : owner;
    if (noted) return { kind: 'owner', owner: noted, ended };
  }
  return { kind: 'not_invited', elsewhere: false };
}

/** The id comes first: an admin may name an organisation like the id of another one. */
const organisationOf = (found: readonly IdentifiedOwner[], named: string): IdentifiedOwner | undefined =>
  found.find(({ owner }) => owner.organisation_id === named) ??
  found.find(({ organisationName }) => organisationName === named);

/**
 * Returns where the person is an owner if no organisation is requested. Anybody who is an admin somewhere can invite any address: an invitation that the
 * person never used must not redirect sign-ins, and programs with what they send, from the organisation that the person uses.
 */
const usualOf = (found: readonly IdentifiedOwner[]): IdentifiedOwner | undefined =>
  found.find(({ owner }) => owner.oidc_subject !== null) ?? found[0];

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
