/** Sessions of browsers in which a person sees the consents they gave, and can withdraw them. */
import type { Broker } from '../broker.ts';
import { deletePersonSessions, listPersonSessions, putPersonSession } from '../store/person-sessions.ts';
import type { Db } from '../store/store.ts';
import type { PersonConsentTable, PersonSessionTable } from '../store/tables/people.ts';

/** Lifetime after a sign-in, which can be repeated. */
const SIGNED_IN_MS = 3600_000;
/** Lifetime for a person whom only a source asserts, and who cannot sign in again. The session shows only what was given in this browser. */
const UNVERIFIED_SESSION_MS = 30 * 24 * 3600_000;

/** The cookie of a browser, as hashes: the new one, and the one it replaces. */
export type SessionCookie = { hash: string; replaces: string | undefined };

/** A session of one person in one browser; `consent_id` empty: shows everything that the person gave. */
export type PersonSession = PersonSessionTable;

type Base = Pick<Broker, 'store' | 'clock'>;

/** Begins a session after a sign-in at an issuer: shows everything that the person gave. Runs in a transaction. */
export const beginSignedIn = async (
  { clock }: Base,
  tx: Db,
  person: { organisationId: string; personId: string },
  { hash, replaces }: SessionCookie,
): Promise<void> =>
  putPersonSession(
    tx,
    {
      cookie_hash: hash,
      organisation_id: person.organisationId,
      person_id: person.personId,
      consent_id: '',
      expires_at: clock() + SIGNED_IN_MS,
    },
    replaces,
  );

/**
 * Begins a session in the browser that completes a consent, in the same transaction. A verified person has signed in for the consent. For a person
 * whom a source asserts, it is unknown who holds the browser: the session shows what was given in it, and nothing else of that person.
 */
export async function beginAfterConsent(
  base: Base,
  tx: Db,
  { organisation_id: organisationId, person_id: personId, id, verified }: PersonConsentTable,
  cookie: SessionCookie,
): Promise<void> {
  if (verified === 1) return await beginSignedIn(base, tx, { organisationId, personId }, cookie);
  const session = { cookie_hash: cookie.hash, organisation_id: organisationId, person_id: personId, consent_id: id };
  await putPersonSession(tx, { ...session, expires_at: base.clock() + UNVERIFIED_SESSION_MS }, cookie.replaces);
}

/** Returns the sessions of a browser, by the hash of its cookie. */
export const sessionsOf = async ({ store, clock }: Base, cookieHash: string | undefined): Promise<PersonSession[]> =>
  cookieHash === undefined ? [] : await listPersonSessions(store.db, cookieHash, clock());

/** Ends all sessions of a browser. */
export const leave = ({ store }: Pick<Broker, 'store'>, cookieHash: string): Promise<void> =>
  deletePersonSessions(store.db, cookieHash);
