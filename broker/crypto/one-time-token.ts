import { randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256Hex } from './canonical.ts';
import { Secret } from './secret.ts';
import { decodeBase64url } from './strict-decoding.ts';

/**
 * The prefix shows people, and secret scanners, what a token is for. `access_request` is the capability of an access request, `secret` authorises sending a
 * secret for an agent, `local` is the command line's own credential for a broker on the same machine, and `static_key` is a bearer for one connection, used
 * many times.
 */
export const TOKEN_PREFIXES = {
  bootstrap: 'abt_',
  invite: 'inv_',
  registration: 'reg_',
  consent: 'cns_',
  sign_in: 'sgn_',
  state: 'sta_',
  access_request: 'req_',
  secret: 'sat_',
  local: 'cli_',
  static_key: 'abk_',
} as const;

export type TokenKind = keyof typeof TOKEN_PREFIXES;

const TOKEN_BYTES = 32;

/**
 * Generates a token of 256 random bits: prefix and 43 characters of base64url.
 * @returns the token, to be shown once, and its hash, which is all that is stored (SHA-256 of the whole text, in hexadecimal; no salt and no key stretching,
 * because 256 random bits cannot be guessed)
 */
export function mintToken(kind: TokenKind): { token: Secret; hash: string } {
  const text = TOKEN_PREFIXES[kind] + randomBytes(TOKEN_BYTES).toString('base64url');
  return { token: new Secret(text), hash: sha256Hex(text) };
}

/** Returns the hash for looking up a presented token; undefined when the text does not have the form of that kind. */
export function hashToken(text: string, kind: TokenKind): string | undefined {
  const prefix = TOKEN_PREFIXES[kind];
  if (!text.startsWith(prefix)) return undefined;
  return decodeBase64url(text.slice(prefix.length))?.length === TOKEN_BYTES ? sha256Hex(text) : undefined;
}

/** Compares a presented token with the stored hash, in constant time. */
export function isToken(text: string, kind: TokenKind, hash: string): boolean {
  const presented = Buffer.from(hashToken(text, kind) ?? '');
  const stored = Buffer.from(hash);
  return presented.length === stored.length && stored.length > 0 && timingSafeEqual(presented, stored);
}
