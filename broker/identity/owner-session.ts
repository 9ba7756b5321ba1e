/** The local issuer: sessions of owners, as ES256 JWTs signed by the broker itself (decisions, Organisations and owners). */
import type { Broker } from '../broker.ts';
import { signCompact, verifyCompact } from '../crypto/jws.ts';
import { isToken, mintToken } from '../crypto/one-time-token.ts';
import type { Secret } from '../crypto/secret.ts';
import { findOwner } from '../store/organisations.ts';
import type { OwnerTable } from '../store/schema.ts';
import type { AuthRefusal, LocalPrincipal, OwnerPrincipal } from './principal.ts';

/** Its own type: no receipt, attestation or agent token can ever pass as one (RFC 8725 section 3.11). */
const SESSION_TYPE = 'svc-owner+jwt';
export const SESSION_SECONDS = 12 * 3600;

/** A session of this owner, from now. Answers the JWT and when it ends (seconds since the epoch). */
export function mintOwnerSession(broker: Broker, owner: OwnerTable): { token: string; expiresAt: number } {
  const now = broker.clock();
  const iat = Math.floor(now / 1000);
  const claims = {
    iss: broker.baseUrl,
    aud: `${broker.baseUrl}/owner`,
    sub: owner.id,
    org: owner.organisation_id,
    role: owner.role,
    iat,
    exp: iat + SESSION_SECONDS,
  };
  return {
    token: signCompact(broker.keys.signer('session', now), { typ: SESSION_TYPE }, claims),
    expiresAt: claims.exp,
  };
}

const refused = (code: AuthRefusal['code'], detail: string): AuthRefusal => ({ kind: 'refused', code, detail });

/** Checks a session. The role is the one that the owner has now, not the one in the token. */
export async function authenticateOwner(broker: Broker, token: string): Promise<OwnerPrincipal | AuthRefusal> {
  const verified = verifyCompact(token, broker.keys.set('session').verifyKeys, { typ: SESSION_TYPE });
  if (!verified.ok) return refused('invalid_token', 'This is not an owner session of this broker.');
  const { iss, aud, sub, org, exp } = verified.payload;
  if (iss !== broker.baseUrl || aud !== `${broker.baseUrl}/owner` || typeof sub !== 'string' || typeof exp !== 'number')
    return refused('invalid_token', 'This owner session is for another broker.');
  if (exp * 1000 <= broker.clock()) return refused('token_expired', 'The session is over: sign in again.');
  const owner = await findOwner(broker.store.db, sub);
  if (!owner || owner.organisation_id !== org)
    return refused('invalid_token', 'This owner is no longer known: sign in again.');
  return { kind: 'owner', owner, organisationId: owner.organisation_id, role: owner.role };
}

/** The credential of the command line on this machine: made at each start, kept in a 0600 file, hashed in memory. */
export type LocalCredential = { token: Secret; matches(token: string): LocalPrincipal | undefined };

export function makeLocalCredential(): LocalCredential {
  const { token, hash } = mintToken('local');
  return { token, matches: (text) => (isToken(text, 'local', hash) ? { kind: 'local' } : undefined) };
}
