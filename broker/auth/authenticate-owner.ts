/** Who an owner's bearer or cookie speaks for: a session of this broker, or a token of the identity provider. */
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { invitedOwner } from './invited-owner.ts';
import { authenticateSession, SESSION_SECONDS, SESSION_TYPE } from './owner-session.ts';
import type { AuthRefusal, OwnerPrincipal, ProviderUnavailable } from './principal.ts';
import { identityOf } from './provider-identity.ts';

export type AuthenticateOwner = (token: string) => Promise<OwnerPrincipal | AuthRefusal | ProviderUnavailable>;

/**
 * Makes it. A token that says that it is the provider's is verified as one and as nothing else, and any other as a session:
 * issuer, type and keys of the two have nothing in common (JW-23).
 */
export function ownerAuthenticator(broker: Broker, provider: IdentityProvider | undefined): AuthenticateOwner {
  return async (token) =>
    provider && claimedIssuer(token) === provider.issuer
      ? await authenticateWithProvider(broker, provider, token)
      : await authenticateSession(broker, token);
}

/**
 * Whether a token says that it is an owner's: a session of this broker by its type, or a token of the identity provider by its
 * issuer. Nothing is verified; who it really is says the one authentication that this leads to.
 */
export function isOwnersToken(provider: IdentityProvider | undefined, token: string): boolean {
  return (
    memberOf(token, 0, 'typ') === SESSION_TYPE || (provider !== undefined && claimedIssuer(token) === provider.issuer)
  );
}

/** What `iss` says, before anything is verified. */
const claimedIssuer = (token: string): unknown => memberOf(token, 1, 'iss');

/** A member of the header (part 0) or of the claims (part 1) of a compact JWS. */
function memberOf(token: string, part: 0 | 1, name: string): unknown {
  try {
    return JSON.parse(Buffer.from(token.split('.', 2)[part] ?? '', 'base64url').toString('utf8'))?.[name];
  } catch {
    return undefined;
  }
}

async function authenticateWithProvider(
  broker: Broker,
  provider: IdentityProvider,
  token: string,
): Promise<OwnerPrincipal | AuthRefusal | ProviderUnavailable> {
  const refused = (code: AuthRefusal['code'], detail: string): AuthRefusal => ({ kind: 'refused', code, detail });
  const verified = await provider.verifyBearer(token);
  if (verified.kind === 'refused') return verified;
  if (verified.kind === 'unavailable')
    return { kind: 'unavailable', detail: `The keys of the identity provider ${provider.host} are not to be had now.` };
  const { claims } = verified;
  const { iat, exp } = claims as { iat: number; exp: number };
  const now = broker.clock() / 1000;
  // A stolen one is good for no longer than a session of our own.
  if (iat <= now - SESSION_SECONDS)
    return refused('token_expired', 'The token is older than 12 hours: sign in at the identity provider again.');
  const identity = identityOf(provider.issuer, claims.sub, claims);
  if (!identity) return refused('invalid_token', 'The token names nobody.');
  // What is signed identifies it: `jti` is not in every token, and signatures can be written in more than one way.
  const sessionId = sha256Hex(token.slice(0, token.lastIndexOf('.')));
  const found = await invitedOwner(broker, identity, { sessionId });
  if (found.kind === 'not_invited')
    return refused(
      'invalid_token',
      'The identity provider vouches for this token, but nobody invited its person here. Ask an admin of the organisation.',
    );
  if (found.ended) return refused('token_expired', 'This token was signed out here: sign in again.');
  const { owner } = found;
  const expiresAt = Math.min(exp, iat + SESSION_SECONDS);
  return {
    kind: 'owner',
    owner,
    organisationId: owner.organisation_id,
    role: owner.role,
    session: { id: sessionId, expiresAt: Math.ceil(expiresAt), signIn: 'oidc' },
  };
}
