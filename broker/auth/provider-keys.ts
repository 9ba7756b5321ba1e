/** The identity provider's published keys, kept here: what is verified with them asks nobody. */
import {
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTHeaderParameters,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import type { Instant } from '../policy/facts.ts';

/** RFC 8725 section 3.1. Signatures only, so that nobody's public key can be taken for a shared secret. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA', 'Ed25519'] as const;
/** At most one request for the keys in so long, whatever it brought. */
const PAUSE_MS = 30_000;
/** Older ones are fetched again before anything is verified with them, so that a withdrawn key is good for no longer. */
const FRESH_MS = 5 * 60_000;
/** While the provider does not answer, the keys that it published last verify for so long. */
const LONGEST_MS = 3600_000;
const SKEW_SECONDS = 30;
/** How far ahead the provider's clock may be. */
const FUTURE_SECONDS = 60;

export type VerifiedToken =
  | { kind: 'verified'; claims: JWTPayload; header: JWTHeaderParameters }
  | { kind: 'refused'; code: 'invalid_token' | 'token_expired' | 'invalid_signature'; detail: string }
  /** There are no keys to verify with, or only ones that are too old. */
  | { kind: 'unavailable' };

export type ProviderKeys = {
  /**
   * Verifies a token of this issuer: signature, times, and that it has `sub`, `iat` and `exp`. The audience is the caller's
   * to check. A key that is not known yet is fetched, once in PAUSE_MS however many a stranger makes up.
   */
  verify(token: string, issuer: string): Promise<VerifiedToken>;
};

/** `fetchKeys` throws when the provider does not answer. `onFailure` hears why. */
export function providerKeys(options: {
  fetchKeys: () => Promise<JSONWebKeySet>;
  onFailure: (error: unknown) => void;
  clock: () => Instant;
}): ProviderKeys {
  const { fetchKeys, onFailure, clock } = options;
  let kept: { find: ReturnType<typeof createLocalJWKSet>; at: Instant } | undefined;
  let askedAt: Instant | undefined;
  let asking: Promise<void> | undefined;

  /** Asks the provider, unless it was asked just now. */
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

  const attempt = async (token: string, issuer: string): Promise<VerifiedToken | 'unknown_key'> => {
    if (!kept || ageOf(kept) > LONGEST_MS) return { kind: 'unavailable' };
    try {
      const { payload, protectedHeader } = await jwtVerify(token, kept.find, {
        algorithms: [...ALGORITHMS],
        issuer,
        currentDate: new Date(clock()),
        clockTolerance: SKEW_SECONDS,
        requiredClaims: ['sub', 'iat', 'exp'],
      });
      if (typeof payload.iat !== 'number' || !(payload.iat <= clock() / 1000 + FUTURE_SECONDS))
        return { kind: 'refused', code: 'invalid_token', detail: 'The token was issued in the future (iat).' };
      return { kind: 'verified', claims: payload, header: protectedHeader };
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return 'unknown_key';
      if (error instanceof errors.JWTExpired)
        return { kind: 'refused', code: 'token_expired', detail: "The provider's token is over: sign in there again." };
      if (error instanceof errors.JWSSignatureVerificationFailed)
        return {
          kind: 'refused',
          code: 'invalid_signature',
          detail: "The token's signature does not match the identity provider's published key.",
        };
      // Whatever jose throws is about this token; its words name claims, never values.
      return {
        kind: 'refused',
        code: 'invalid_token',
        detail: "This token does not verify with the identity provider's published keys.",
      };
    }
  };

  return {
    async verify(token, issuer) {
      if (!kept || ageOf(kept) > FRESH_MS) await refresh();
      let verified = await attempt(token, issuer);
      if (verified === 'unknown_key') {
        await refresh();
        verified = await attempt(token, issuer);
      }
      return verified === 'unknown_key'
        ? {
            kind: 'refused',
            code: 'invalid_token',
            detail: "The token's key is none of those that the identity provider publishes.",
          }
        : verified;
    },
  };
}
