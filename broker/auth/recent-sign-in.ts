/**
 * How recently an owner proved who they are. Creating what outlives a session (passkeys, sign-in links) requires a recent sign-in: a stolen cookie or
 * an unattended browser has a session, too (OWASP ASVS 5.0, 7.5.1).
 */
import type { JWTPayload } from 'jose';
import type { Instant } from '../policy/facts.ts';
import type { OwnerPrincipal } from './principal.ts';

export const RECENT_SIGN_IN_SECONDS = 10 * 60;

/** Whether the owner signed in within the last RECENT_SIGN_IN_SECONDS. */
export const signedInRecently = ({ session }: OwnerPrincipal, now: Instant): boolean =>
  session.authTime !== undefined && now / 1000 - session.authTime < RECENT_SIGN_IN_SECONDS;

/**
 * Returns when the person signed in at the provider, by a token of it (OpenID Connect Core section 2), in seconds since the epoch; undefined when the
 * token does not state it. Not the token's issue time: a provider with an active session issues one without asking the person.
 */
export const authTimeOf = ({ auth_time: at, iat }: JWTPayload): number | undefined =>
  typeof at === 'number' ? Math.min(at, iat ?? at) : undefined;
