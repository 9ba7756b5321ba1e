/**
 * The signature algorithms accepted from external issuers of tokens (RFC 7518 section 3.1, RFC 8037 section 3.1, RFC 9864 section 2.2). Asymmetric only, so
 * that a public key cannot be used as an HMAC secret (RFC 8725 section 3.1).
 */
export const ISSUER_ALGORITHMS = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const),
  ...(['EdDSA', 'Ed25519'] as const),
] as const;
