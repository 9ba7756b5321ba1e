/** Signs people in at an issuer of assertions that an organisation trusts, so that they can see what they gave. */
import { readCallerIssuers } from '../../people/caller-issuer.ts';
import { beginSignedIn, type SessionCookie } from '../../people/sessions.ts';
import type { SignInAnswer, SignInAt, SignInState } from '../../people/sign-in.ts';
import { findOrganisation, listOrganisations } from '../../store/organisations.ts';
import { findPersonId } from '../../store/people.ts';
import { inTransaction } from '../../store/transaction.ts';
import { ChangeRefused } from '../refused.ts';
import type { Consenting } from './person-consent.ts';

/** The issuers at which people of an organisation can sign in. */
export type SignInPlaces = { id: string; name: string; issuers: readonly string[] };

/** Returns them for the organisation with this id or, without one, for the only organisation; undefined: none. */
export async function signInPlaces(
  { broker }: Pick<Consenting, 'broker'>,
  organisationId: string | undefined,
): Promise<SignInPlaces | undefined> {
  const { db } = broker.store;
  const [only, ...others] = organisationId === undefined ? await listOrganisations(db) : [];
  const found = organisationId === undefined ? others.length === 0 && only : await findOrganisation(db, organisationId);
  if (!found) return undefined;
  const issuers = readCallerIssuers(found.caller_issuers).filter(({ client_id: id }) => id !== undefined);
  return { id: found.id, name: found.name, issuers: issuers.map(({ issuer }) => issuer) };
}

/** The state that a browser keeps until it comes back. */
export type PersonSignIn = SignInState & { organisation: string; issuer: string };

/** @throws ChangeRefused */
export async function beginPersonSignIn(
  services: Consenting,
  at: { organisation: string; issuer: string },
): Promise<{ url: string; kept: PersonSignIn }> {
  const begun = await services.signIns.begin(await trusted(services, at));
  if ('problem' in begun) throw new ChangeRefused('conflict', begun.problem);
  return { url: begun.url, kept: { ...begun.kept, ...at } };
}

/** Begins the person's session. Returns false when this person gave nothing here. @throws ChangeRefused */
export async function finishPersonSignIn(
  services: Consenting,
  answer: SignInAnswer,
  { organisation, issuer, ...kept }: PersonSignIn,
  cookie: SessionCookie,
): Promise<boolean> {
  const { broker, people, signIns } = services;
  const identity = await signIns.finish(await trusted(services, { organisation, issuer }), answer, kept);
  if ('problem' in identity) throw new ChangeRefused('forbidden', identity.problem);
  const hash = await people.hasher.hash(organisation, identity);
  const personId = await findPersonId(broker.store.db, organisation, hash);
  if (personId === undefined) return false;
  await inTransaction(broker.store.db, (tx) =>
    beginSignedIn(broker, tx, { organisationId: organisation, personId }, cookie),
  );
  return true;
}

async function trusted(
  { people }: Consenting,
  { organisation, issuer }: { organisation: string; issuer: string },
): Promise<SignInAt> {
  const found = await people.assertions.issuer(organisation, issuer);
  if (!found) throw new ChangeRefused('not_found', 'The organisation does not trust this issuer.');
  return { organisationId: organisation, issuer: found };
}
