/** Browsers in which a person sees what they gave, and can withdraw it. */
import type { Broker } from '../broker.ts';
import { deletePersonSessions, listPersonSessions, putPersonSession } from '../store/person-sessions.ts';
import type { Db } from '../store/store.ts';
import type { PersonConsentTable, PersonSessionTable } from '../store/tables/people.ts';

/** Whoever signed in can do so again. */
const SIGNED_IN_MS = 3600_000;
/** Somebody whom only a source asserts has no other way back. It shows no more than what this browser gave. */
const GAVE_HERE_MS = 30 * 24 * 3600_000;

/** The cookie of a browser, as hashes: the one that it is given now, and the one that it had. */
export type SessionCookie = { hash: string; replaces: string | undefined };

/** Of one person in one browser; `consent_id` empty: all that the person gave. */
export type PersonSession = PersonSessionTable;

type Base = Pick<Broker, 'store' | 'clock'>;

/** After signing in at an issuer: shows all that the person gave. In a transaction. */
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
 * In the browser that completes a consent, in that transaction. A verified person has signed in for it. Of one for whom a source
 * vouches nobody knows who holds the browser: it shows what was given in it, and nothing else of that person.
 */
export async function beginAfterConsent(
  base: Base,
  tx: Db,
  { organisation_id: organisationId, person_id: personId, id, verified }: PersonConsentTable,
  cookie: SessionCookie,
): Promise<void> {
  if (verified === 1) return await beginSignedIn(base, tx, { organisationId, personId }, cookie);
  const session = { cookie_hash: cookie.hash, organisation_id: organisationId, person_id: personId, consent_id: id };
  await putPersonSession(tx, { ...session, expires_at: base.clock() + GAVE_HERE_MS }, cookie.replaces);
}

/** Those of a browser, by the hash of its cookie. */
export const sessionsOf = async ({ store, clock }: Base, cookieHash: string | undefined): Promise<PersonSession[]> =>
  cookieHash === undefined ? [] : await listPersonSessions(store.db, cookieHash, clock());

/** Ends them all. */
export const leave = ({ store }: Pick<Broker, 'store'>, cookieHash: string): Promise<void> =>
  deletePersonSessions(store.db, cookieHash);
