/** Authenticates owners by bearer or cookie: a session of this broker, or a token of the identity provider. */
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { Instant } from '../policy/facts.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { claimedWorkload } from './authenticate-workload.ts';
import { claimsOf, partOf } from './claimed.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { invitedOwner } from './invited-owner.ts';
import { authenticateSession, SESSION_SECONDS, SESSION_TYPE } from './owner-session.ts';
import { type AuthRefusal, type OwnerPrincipal, type ProviderUnavailable, refused } from './principal.ts';
import { identityOf } from './provider-identity.ts';
import { providerSessionOf } from './provider-session.ts';
import { authTimeOf } from './recent-sign-in.ts';
import { groupsIn, HIGHEST_FIRST, mustSignInAgain, roleOf } from './roles-by-groups.ts';

export type AuthenticateOwner = (token: string) => Promise<OwnerPrincipal | AuthRefusal | ProviderUnavailable>;

/**
 * Returns the authenticator. A token that claims the provider as its issuer is verified only as such, and any other only as a session: issuer,
 * type and keys of the two are disjoint (JW-23).
 */
export function ownerAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store' | 'keys'>,
  provider: IdentityProvider | undefined,
): AuthenticateOwner {
  return async (token) =>
    provider && claimedIssuer(token) === provider.issuer
      ? await authenticateWithProvider(broker, provider, token)
      : await authenticateSession(broker, token);
}

/**
 * Whether a token claims to be an owner's: a session of this broker by its type, or a token of the identity provider by its
 * issuer. Unverified; it only selects how the token is authenticated.
 */
export function isOwnersToken(baseUrl: string, provider: IdentityProvider | undefined, token: string): boolean {
  const isSession = signatureLength(token) === ES256_LENGTH && partOf(token, 0).typ === SESSION_TYPE;
  if (isSession || provider === undefined || claimedIssuer(token) !== provider.issuer) return isSession;
  // The provider may also issue tokens for workloads of agents, which are not owners' tokens.
  return claimedWorkload(baseUrl, token) === undefined;
}

/**
 * Length of a session's signature in base64url: 64 bytes (RFC 7518 section 3.4). Agents' signatures are longer, so their header need not be parsed here.
 */
const ES256_LENGTH = 86;
const signatureLength = (token: string): number => token.length - token.lastIndexOf('.') - 1;

/** Returns the unverified `iss`. */
const claimedIssuer = (token: string): unknown => claimsOf(token).iss;

async function authenticateWithProvider(
  broker: Pick<Broker, 'clock' | 'store'>,
  provider: IdentityProvider,
  token: string,
): Promise<OwnerPrincipal | AuthRefusal | ProviderUnavailable> {
  const verified = await provider.verifyBearer(token);
  if (verified.kind === 'refused') return verified;
  if (verified.kind === 'unavailable')
    return {
      kind: 'unavailable',
      detail: `Cannot fetch the signing keys (JWKS) of the identity provider ${provider.host}.`,
    };
  const { claims } = verified;
  const { iat, exp } = claims as { iat: number; exp: number };
  const now = broker.clock() / 1000;
  // A stolen token is accepted for no longer than the broker's own sessions.
  if (iat <= now - SESSION_SECONDS)
    return refused('token_expired', 'The token is older than 12 hours: sign in at the identity provider again.');
  const identity = identityOf(provider, claims.sub, claims);
  if (!identity) return refused('invalid_token', 'Token has no usable subject (sub).');
  // Identifies the session by the signing input: not every token has `jti`, and signatures are malleable.
  const sessionId = sha256Hex(token.slice(0, token.lastIndexOf('.')));
  const comesFrom = { ...providerSessionOf(provider.issuer, claims), isOurs: false };
  const marks = { id: sessionId, begunAt: Math.floor(iat * 1000), provider: comesFrom };
  const found = await invitedOwner(broker, identity, { marks });
  if (found.kind === 'not_invited')
    return refused(
      'invalid_token',
      'The token is valid, but the person that it identifies is not an owner here. Ask an admin of the organisation.',
    );
  if (found.ended) return refused('token_expired', 'The session of this token was signed out here: sign in again.');
  const { owner } = found;
  const role = roleByToken(provider, owner, claims, broker.clock());
  if (typeof role === 'object') return role;
  const expiresAt = Math.min(exp, iat + SESSION_SECONDS);
  return {
    kind: 'owner',
    // The token's role also replaces the stored one, for code that reads the role from `owner`.
    owner: { ...owner, role },
    organisationId: owner.organisation_id,
    role,
    session: {
      id: sessionId,
      expiresAt: Math.ceil(expiresAt),
      marks,
      signIn: 'oidc',
      // When the provider does not state the time of the sign-in, the token's issue time counts: a program cannot be sent to sign in (specification,
      // Authentication 5).
      authTime: authTimeOf(claims) ?? iat,
    },
  };
}

/**
 * Returns the role of an owner. A role that comes from groups is limited to what the token's groups give. When the token names no groups, the stored role
 * counts, for as long as it does for decisions without a session: nothing later confirms that the person still has it.
 */
function roleByToken(
  { groups: by }: IdentityProvider,
  owner: OwnerTable,
  claims: Record<string, unknown>,
  now: Instant,
): OwnerTable['role'] | AuthRefusal {
  const groups = by && owner.role_by_groups === 1 ? groupsIn(claims, by) : undefined;
  if (!by || !groups)
    return mustSignInAgain(owner, now)
      ? refused(
          'token_expired',
          'The role comes from groups of the identity provider, which were last read more than 30 days ago, and the token contains no groups. Sign in to the console once, or configure the provider to put the groups into the token.',
        )
      : owner.role;
  const role = roleOf(by.roles, groups);
  if (role === undefined)
    return refused('invalid_token', 'The token names no group that gives its person a role here.');
  return HIGHEST_FIRST.indexOf(role) > HIGHEST_FIRST.indexOf(owner.role) ? role : owner.role;
}
