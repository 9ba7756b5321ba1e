/** Sessions at the identity provider, by which sessions here end when they do (OpenID Connect Back-Channel Logout 1.0). */
import type { JWTPayload } from 'jose';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { endProviderSession, type ProviderSession } from '../store/ended-sessions.ts';
import type { VerifiedToken } from './provider-keys.ts';

/** Section 2.4. */
const EVENT = 'http://schemas.openid.net/event/backchannel-logout';
/** Section 2.4 recommends the first; providers of before send ID tokens' types. */
const TYPES = new Set<unknown>(['logout+jwt', 'jwt', undefined]);

/** Of the claims of an ID token, or of a logout token. Names are hashed, so that any fits a column, and none says who it is. */
export function providerSessionOf(issuer: string, { sub, sid }: JWTPayload): ProviderSession {
  const nameOf = (kind: string, value: unknown) => `${kind}:${sha256Hex(JSON.stringify([issuer, value]))}`;
  return {
    person: nameOf('person', sub),
    ...(typeof sid === 'string' && sid !== '' && { session: nameOf('session', sid) }),
  };
}

/** Why a verified JWT is no logout token for this client (section 2.6), in a sentence; undefined: it is one. */
export function logoutFault(
  { claims, header }: Extract<VerifiedToken, { kind: 'verified' }>,
  clientId: string,
): string | undefined {
  const type = typeof header.typ === 'string' ? header.typ.toLowerCase() : header.typ;
  const { events, nonce, aud } = claims;
  if (!TYPES.has(type)) return 'The token is of another type than logout+jwt (typ).';
  if (![aud].flat().includes(clientId)) return 'The logout token is for another client (aud).';
  if (nonce !== undefined) return 'A logout token has no nonce: this is an ID token.';
  const event = typeof events === 'object' && events !== null && (events as Record<string, unknown>)[EVENT];
  if (typeof event !== 'object' || event === null) return `A logout token has the event ${EVENT} (events).`;
  return undefined;
}

/** Ends what the person of a logout token began by that session, or by any where it names none. Returns how many organisations that is of. */
export async function endSessionsOf(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  issuer: string,
  claims: JWTPayload,
): Promise<number> {
  return await endProviderSession(store.db, `${issuer} ${claims.sub}`, providerSessionOf(issuer, claims), clock());
}
