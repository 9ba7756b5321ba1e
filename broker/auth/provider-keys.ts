/** Cache of the identity provider's published keys (JWKS), so that verifying needs no request. */
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  errors,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  type JWTPayload,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  jwtVerify,
} from 'jose';
import { ISSUER_ALGORITHMS } from '../crypto/issuer-algorithms.ts';
import type { Instant } from '../policy/facts.ts';

/** Minimum interval between requests for the keys, whatever their result. */
const PAUSE_MS = 30_000;
/** Older keys are refreshed in the background while they stay in use, so that an outage of the provider of some minutes has no effect. */
const FRESH_MS = 60_000;
/** Older keys verify nothing, even when the provider does not answer: the longest time that a withdrawn key stays accepted. */
const MAX_DURATION_MS = 5 * 60_000;
/** The most keys tried for a token without `kid`: a key set may have thousands, and each try is a signature verification. */
const MAX_TRIED = 20;
const SKEW_SECONDS = 30;
/** Allowed clock skew of the provider. */
export const FUTURE_SECONDS = 60;
/** The claims that a token needs to identify somebody. */
const IDENTIFYING = ['sub', 'iat', 'exp'];

export type VerifiedToken =
  | { kind: 'verified'; claims: JWTPayload; header: JWTHeaderParameters }
  | { kind: 'refused'; code: 'invalid_token' | 'token_expired' | 'invalid_signature'; detail: string }
  /** No keys are available, or only ones that are too old. */
  | { kind: 'unavailable' };

export type ProviderKeys = {
  /**
   * Verifies a token of this issuer: signature, times, and the presence of the `required` claims (default: `sub`, `iat` and `exp`). The
   * caller checks the audience. An unknown kid triggers a fetch, at most once in PAUSE_MS however many kids are made up.
   */
  verify(token: string, issuer: string, required?: readonly string[]): Promise<VerifiedToken>;
};

/** `fetchKeys` throws when the provider does not answer. `onFailure` is called with the error. */
export function providerKeys(options: {
  fetchKeys: () => Promise<JSONWebKeySet>;
  onFailure: (error: unknown) => void;
  clock: () => Instant;
}): ProviderKeys {
  const { fetchKeys, onFailure, clock } = options;
  let kept: { find: ReturnType<typeof createLocalJWKSet>; at: Instant } | undefined;
  let askedAt: Instant | undefined;
  let asking: Promise<void> | undefined;

  /** Fetches the keys, unless the last fetch was less than PAUSE_MS ago. */
  const refresh = (): Promise<void> => {
    if (asking) return asking;
    const since = askedAt === undefined ? Number.POSITIVE_INFINITY : Math.abs(clock() - askedAt);
    if (since < PAUSE_MS) return Promise.resolve();
    askedAt = clock();
    asking = fetchKeys()
      .then((set) => {
        kept = { find: createLocalJWKSet(set), at: clock() };
      })
      .catch(onFailure)
      .finally(() => {
        asking = undefined;
      });
    return asking;
  };

  const ageOf = ({ at }: { at: Instant }): number => Math.abs(clock() - at);

  const attempt = async (
    token: string,
    issuer: string,
    required: readonly string[],
  ): Promise<VerifiedToken | 'unknown_key'> => {
    if (!kept || ageOf(kept) > MAX_DURATION_MS) return { kind: 'unavailable' };
    try {
      const { payload, protectedHeader } = await verifyByAny(token, kept.find, {
        algorithms: [...ISSUER_ALGORITHMS],
        issuer,
        currentDate: new Date(clock()),
        clockTolerance: SKEW_SECONDS,
        requiredClaims: [...required],
      });
      if (typeof payload.iat !== 'number' || !(payload.iat <= clock() / 1000 + FUTURE_SECONDS))
        return { kind: 'refused', code: 'invalid_token', detail: 'The token was issued in the future (iat).' };
      return { kind: 'verified', claims: payload, header: protectedHeader };
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return 'unknown_key';
      if (error instanceof errors.JWTExpired)
        return {
          kind: 'refused',
          code: 'token_expired',
          detail: "The provider's token has expired: sign in there again.",
        };
      if (error instanceof errors.JWSSignatureVerificationFailed)
        return {
          kind: 'refused',
          code: 'invalid_signature',
          detail: "The token's signature does not match the identity provider's published key.",
        };
      if (error instanceof errors.JOSEAlgNotAllowed)
        return { kind: 'refused', code: 'invalid_token', detail: otherAlgorithm(token) };
      if (error instanceof errors.JWTClaimValidationFailed)
        return {
          kind: 'refused',
          code: 'invalid_token',
          detail: `The token's ${error.claim} is ${error.reason === 'missing' ? 'missing' : 'not the expected value'}.`,
        };
      // Errors of jose are about this token; their messages name claims, never values.
      return {
        kind: 'refused',
        code: 'invalid_token',
        detail: "This token cannot be verified with the identity provider's published keys.",
      };
    }
  };

  return {
    async verify(token, issuer, required = IDENTIFYING) {
      if (!kept || ageOf(kept) > MAX_DURATION_MS) await refresh();
      else if (ageOf(kept) > FRESH_MS) void refresh();
      let verified = await attempt(token, issuer, required);
      if (verified === 'unknown_key') {
        await refresh();
        verified = await attempt(token, issuer, required);
      }
      return verified === 'unknown_key'
        ? {
            kind: 'refused',
            code: 'invalid_token',
            detail: "The token's kid is not among the identity provider's published keys.",
          }
        : verified;
    },
  };
}

/** Verifies a token without `kid`, of a provider with several keys, with each of the first MAX_TRIED. Throws the errors of jose. */
async function verifyByAny(
  token: string,
  find: ReturnType<typeof createLocalJWKSet>,
  options: JWTVerifyOptions,
): Promise<JWTVerifyResult> {
  try {
    return await jwtVerify(token, find, options);
  } catch (error) {
    if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
    let tried = 0;
    for await (const key of error) {
      if (++tried > MAX_TRIED) break;
      try {
        return await jwtVerify(token, key, options);
      } catch (other) {
        if (!(other instanceof errors.JWSSignatureVerificationFailed)) throw other;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  }
}

/** The algorithm is unverified text of the token, so it is repeated only when it has the form of an algorithm's name. */
function otherAlgorithm(token: string): string {
  const { alg } = decodeProtectedHeader(token);
  const named = typeof alg === 'string' && /^[A-Za-z0-9-]{1,20}$/.test(alg) ? alg : 'another algorithm';
  return `The token is signed with ${named}: have the identity provider sign with one of ${ISSUER_ALGORITHMS.join(', ')}.`;
}
