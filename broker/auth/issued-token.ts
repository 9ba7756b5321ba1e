/**
 * Verifies tokens that a platform issues for one of its jobs or workloads (GitHub Actions, GitLab CI, service accounts of Kubernetes, JWT-SVIDs of
 * SPIFFE). An admin names their issuer and subject. Their audience is an address of this broker with the id of the pipeline or agent.
 */
import type { JWTPayload } from 'jose';
import type { Broker } from '../broker.ts';
import { claimsOf } from './claimed.ts';
import { issuerKeys } from './issuer-keys.ts';
import { SESSION_SECONDS } from './owner-session.ts';
import { type AuthRefusal, type ProviderUnavailable, refused } from './principal.ts';
import { mayIdentify } from './provider-identity.ts';

/** `jwks_uri`: URL of the issuer's keys; null: found by discovery. */
export type Trusted = { issuer: string; subject: string; jwks_uri: string | null };

/** `(token, trusted, what)`: `trusted` is undefined when the audience names nothing known; `what`: the kind of the trusting party, such as `pipeline`. */
export type VerifyIssued = (
  token: string,
  trusted: Trusted | undefined,
  what: string,
) => Promise<{ kind: 'verified'; claims: JWTPayload } | AuthRefusal | ProviderUnavailable>;

/** Returns the rest of the unverified `aud` after `prefix`, where that is the only audience; undefined for any other audience. */
export function audienceBelow(prefix: string, token: string): string | undefined {
  const { aud } = claimsOf(token);
  const only: unknown = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  return typeof only === 'string' && only.startsWith(prefix) ? only.slice(prefix.length) : undefined;
}

/** Allowed form of a subject: printable ASCII only, as in the tokens of all such platforms. */
export const SUBJECT_FORM = /^[\x21-\x7e]{1,255}$/;

/** Returns a claim that may be shown to a person; undefined when it has another form. */
export const shown = (value: unknown): string | undefined =>
  typeof value === 'string' && SUBJECT_FORM.test(value) ? value : undefined;

/** Returns the verifier, which caches the keys of issuers. */
export function issuedTokenVerifier(broker: Pick<Broker, 'clock' | 'log' | 'outbound'>): VerifyIssued {
  const keysOf = issuerKeys(broker);
  return async (token, trusted, what) => {
    // Checked before anything is verified: keys are fetched only from issuers that an admin named.
    if (!trusted || claimsOf(token).iss !== trusted.issuer)
      return refused('invalid_token', `The audience (aud) of the token names no ${what} that trusts its issuer (iss).`);
    const { issuer, subject, jwks_uri } = trusted;
    const keys = await keysOf({ issuer, jwks_uri: jwks_uri ?? undefined });
    const verified = await keys.verify(token, issuer);
    if (verified.kind === 'unavailable')
      return {
        kind: 'unavailable',
        detail: `Cannot fetch the signing keys (JWKS) of ${issuer}, which issues the tokens of this ${what}.`,
      };
    if (verified.kind === 'refused') {
      const { code } = verified;
      return refused(code, code === 'invalid_token' ? `${REFUSED[code]} ${verified.detail}` : REFUSED[code]);
    }
    const { claims, header } = verified;
    if (!mayIdentify(header, claims))
      return refused('invalid_token', 'The type of the token (typ) is not one that identifies a caller.');
    if ((claims.iat ?? 0) <= broker.clock() / 1000 - SESSION_SECONDS)
      return refused('token_expired', `The token is older than 12 hours: let the ${what} get a new one.`);
    // The subject is verified now, so it may be shown, for comparison with the one that the admin configured.
    if (claims.sub !== subject)
      return refused(
        'invalid_token',
        `The token is of the subject ${shown(claims.sub) ?? '(in a form that cannot be shown)'}, and the ${what} trusts another one.`,
      );
    return { kind: 'verified', claims };
  };
}

const REFUSED = {
  // The reason follows, such as a claim that is missing.
  invalid_token: 'The token cannot be verified.',
  invalid_signature: 'The signature of the token does not match the key that its issuer publishes.',
  token_expired: 'The token has expired: get a new one from its issuer.',
} as const satisfies Partial<Record<AuthRefusal['code'], string>>;
