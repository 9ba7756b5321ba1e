/** Sessions at the identity provider: the broker's sessions end when they do (OpenID Connect Back-Channel Logout 1.0). */
import type { JWTPayload } from 'jose';
import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import {
  endPersonsSessions,
  endProviderSession,
  endUnnamedSessions,
  type ProviderSession,
} from '../store/ended-sessions.ts';
import { listOwnersOfSubject } from '../store/owner-identities.ts';
import type { Db } from '../store/store.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { rollback } from '../store/transaction.ts';
import { FUTURE_SECONDS, type VerifiedToken } from './provider-keys.ts';

/** The event that a logout token contains (section 2.4). */
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** Accepted types. Section 2.4 recommends the first; providers older than that send the types of ID tokens. */
const TYPES = new Set<unknown>(['logout+jwt', 'jwt', undefined]);
/** For a logout token without `exp`, as Ory Hydra sends it: how long after `iat` it is accepted. */
const MAX_SECONDS_WITHOUT_EXPIRY = 5 * 60;

const isName = (claim: unknown): claim is string => typeof claim === 'string' && claim !== '';

/** Reads the session from the claims of an ID token or logout token. Names are hashed, so that each fits a column and does not reveal the person. */
export function providerSessionOf(issuer: string, { sub, sid }: JWTPayload): ProviderSession {
  const nameOf = (kind: string, value: unknown) => `${kind}:${sha256Hex(JSON.stringify([issuer, value]))}`;
  return { person: nameOf('person', sub), ...(isName(sid) && { session: nameOf('session', sid) }) };
}

/**
 * Returns why a verified JWT is not a logout token for this client (section 2.6), in a sentence; undefined when it is one. `now`: seconds since the
 * epoch.
 */
export function logoutFault(
  { claims, header }: Extract<VerifiedToken, { kind: 'verified' }>,
  clientId: string,
  now: number,
): string | undefined {
  const type = typeof header.typ === 'string' ? header.typ.toLowerCase() : header.typ;
  const { events, nonce, aud, sub, sid, iat = 0, exp } = claims;
  if (sub === undefined && !isName(sid)) return 'A logout token names a person or a session (sub, sid).';
  if (sub !== undefined && !isName(sub)) return "The token's sub is not valid.";
  if (exp === undefined && iat < now - MAX_SECONDS_WITHOUT_EXPIRY)
    return 'A logout token without exp is accepted for only five minutes after iat.';
  if (!TYPES.has(type)) return 'The token is of another type than logout+jwt (typ).';
  if (![aud].flat().includes(clientId)) return 'The logout token is for another client (aud).';
  if (nonce !== undefined) return 'A logout token has no nonce: this is an ID token.';
  const event = typeof events === 'object' && events !== null && (events as Record<string, unknown>)[EVENT];
  if (typeof event !== 'object' || event === null) return `A logout token has the event ${EVENT} (events).`;
  return undefined;
}

/**
 * Ends the sessions here that the person of a logout token began by the named session at the provider, or by any when the token names none; recorded
 * in the audit of each organisation of the person. A token with a session and no person ends the sessions that anybody began by it. Returns the
 * number of organisations in which a session was newly ended.
 *
 * @throws AuditUnavailable, and then the provider has to send the token again
 */
export async function endSessionsOf(
  services: Changing,
  issuer: string,
  claims: JWTPayload,
  correlationId: string,
): Promise<number> {
  const { store, clock } = services.broker;
  const { person, session } = providerSessionOf(issuer, claims);
  const subject = claims.sub === undefined ? undefined : `${issuer} ${claims.sub}`;
  const now = clock();
  // Sessions begun after the logout stay valid, also when the same token is sent again. The provider's clock may differ.
  const until = Math.min(now, Math.floor(((claims.iat ?? 0) + FUTURE_SECONDS) * 1000));
  if (subject === undefined)
    return session === undefined ? 0 : await endProviderSession(store.db, { issuer }, session, now);
  const end = (db: Db, owner: OwnerTable): Promise<number> =>
    session === undefined ? endPersonsSessions(db, owner, person, until) : endProviderSession(db, owner, session, now);
  let count = 0;
  for (const owner of await listOwnersOfSubject(store.db, subject)) {
    // Some providers name the session in logout tokens but not in ID tokens.
    if (session !== undefined) await endUnnamedSessions(store.db, owner, person, until);
    const by = byBroker(owner.organisation_id, correlationId);
    const change = { reason: 'owner_sessions_ended', detail: owner.email };
    const ended = await recordChange(services, by, change, async (tx, note) => {
      if ((await end(tx, owner)) === 0) return rollback('ended before');
      note({ owner: owner.id });
      return true;
    });
    if (ended === true) count += 1;
  }
  return count;
}
