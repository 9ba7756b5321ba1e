/** The person of a verified token of the identity provider. */
import type { JWTHeaderParameters, JWTPayload } from 'jose';
import type { ProviderIdentity } from '../store/owner-identities.ts';

/**
 * RFC 8725 section 3.11: ID tokens have no type or `JWT`, access tokens `at+jwt` (RFC 9068). Sessions of this broker,
 * receipts, logout tokens and security events are none of these.
 */
const TYPES = new Set<string | undefined>([undefined, 'jwt', 'at+jwt', 'application/at+jwt']);
const MAX_SUBJECT_LENGTH = 255;

/** Whether a token of this type may identify somebody. A token with `events` is a security event (RFC 8417 section 2). */
export function mayIdentify({ typ }: JWTHeaderParameters, claims: JWTPayload): boolean {
  return TYPES.has(typeof typ === 'string' ? typ.toLowerCase() : typ) && claims.events === undefined;
}

/**
 * Whether a token is meant for this broker: its audience is the broker's base URL, as an API of the provider, or our client id
 * (OpenID Connect Core section 3.1.3.7: with several audiences, or with `azp`, that must be our client).
 */
export function isForUs({ aud, azp }: JWTPayload, us: { clientId: string; baseUrl: string }): boolean {
  const audiences = Array.isArray(aud) ? aud : [aud];
  if (audiences.includes(us.baseUrl)) return true;
  if (!audiences.includes(us.clientId)) return false;
  return azp === undefined ? audiences.length === 1 : azp === us.clientId;
}

/** Hosts of Microsoft Entra ID, which never sends `email_verified`. */
const ENTRA =
  /^(?:login\.microsoftonline\.(?:com|us)|login\.partner\.microsoftonline\.cn|sts\.windows\.net|[a-z0-9-]+\.ciamlogin\.com)$/;
/** The values that mean true; they depend on how the claim was configured. */
const YES: readonly unknown[] = [true, 1, '1', 'true'];

/** The provider's settings that decide whether an e-mail address counts as verified. */
export type EmailRule = {
  issuer: string;
  /** Whether every address counts as verified, regardless of the claims (OIDC_TRUST_EMAIL). */
  trustEmail: boolean;
};

/**
 * Whether these claims say that the address is verified: `email_verified` (OpenID Connect Core section 5.1; a string where a provider makes claims of
 * attributes, as Entra ID and AD FS do), or at Entra ID the optional claim `xms_edov` ("email domain owner verified"). Undefined: neither claim is
 * present.
 */
export function isVerified({ issuer, trustEmail }: EmailRule, claims: Record<string, unknown>): boolean | undefined {
  if (trustEmail && claims.email !== undefined) return true;
  const { email_verified: verified } = claims;
  if (verified !== undefined) return verified === true || verified === 'true';
  if (claims.xms_edov === undefined || !ENTRA.test(new URL(issuer).hostname)) return undefined;
  return YES.includes(claims.xms_edov);
}

/**
 * Returns the identity: issuer and `sub` in one string (a `sub` is unique at its issuer only), and the e-mail address only when
 * it counts as verified. Undefined when there is no usable `sub`.
 */
export function identityOf(
  provider: EmailRule,
  sub: unknown,
  claims: Record<string, unknown>,
): ProviderIdentity | undefined {
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_SUBJECT_LENGTH || !/^[^\p{Cc}\p{Cs}]+$/u.test(sub))
    return undefined;
  const { email } = claims;
  const usable =
    isVerified(provider, claims) === true &&
    typeof email === 'string' &&
    email.length <= 254 &&
    !/[\p{Cc}\p{Cs}]/u.test(email);
  return { subject: `${provider.issuer} ${sub}`, email: usable ? email : undefined };
}
