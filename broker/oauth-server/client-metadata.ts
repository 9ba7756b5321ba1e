/** What clients say of themselves, by registration or in a document, made to what is served here. */
import { type AllClientMetadata, errors } from 'oidc-provider';
import { CLIENT_AUTH_METHODS } from './metadata.ts';

/** The library calls us for members of its own; this one is of RFC 7591 section 2, and nothing is done with it. */
export const EXTRA_METADATA = ['software_id'];

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
const MOST_REDIRECTS = 20;
/** Characters: of one redirect URI, and of all of a client. */
const LONGEST_REDIRECT = 1_024;
const MOST_REDIRECT_TEXT = 4_096;
/** Schemes that browsers and systems handle themselves: no application has one of them to itself (RFC 8252 section 7.1). */
const FOREIGN_SCHEMES =
  /^(ftps?|sftp|wss?|mailto|tel|sms|view-source|javascript|vbscript|data|file|blob|filesystem|about|chrome|jar|ldaps?|smb|ssh|telnet):/i;
/** RFC 7518 section 3.3, in bytes. */
const SHORTEST_RSA = 2048 / 8;
const MOST_NAME = 100;

/**
 * RFC 7591 section 2: the server may put other values in place of those that a client asked for, and tells it so. Who asks
 * for a secret is a public client here: a secret that anybody gets who asks proves nothing that PKCE does not. Scopes are
 * asked for at each authorization.
 *
 * @throws InvalidClientMetadata for what is not served, or would make this process ask an address
 * @throws InvalidRedirectUri when a code would be sent over http elsewhere than to this very machine (RFC 8252 section 8.3)
 */
export function settleClientMetadata(metadata: AllClientMetadata): void {
  delete metadata.scope;
  // The library made one for whoever did not say that they want none.
  delete metadata.client_secret;
  delete metadata.client_secret_expires_at;
  if (!CLIENT_AUTH_METHODS.includes(metadata.token_endpoint_auth_method as never))
    metadata.token_endpoint_auth_method = 'none';
  if (metadata.jwks_uri !== undefined && !/^https:/i.test(String(metadata.jwks_uri)))
    throw new errors.InvalidClientMetadata('jwks_uri: https');
  // The library would fetch it. There are no pairwise subjects here that it could be for.
  if (metadata.sector_identifier_uri !== undefined)
    throw new errors.InvalidClientMetadata('sector_identifier_uri: not supported');
  if (hasShortKey(metadata.jwks))
    throw new errors.InvalidClientMetadata('jwks: an RSA key needs 2048 bits at least, or no assertion would verify');
  const redirects = metadata.redirect_uris ?? [];
  if (!Array.isArray(redirects) || redirects.length > MOST_REDIRECTS)
    throw new errors.InvalidClientMetadata(`redirect_uris: a list of ${MOST_REDIRECTS} at most`);
  if (redirects.join('').length > MOST_REDIRECT_TEXT || redirects.some((uri) => String(uri).length > LONGEST_REDIRECT))
    throw new errors.InvalidClientMetadata(
      `redirect_uris: ${LONGEST_REDIRECT} characters each, and ${MOST_REDIRECT_TEXT} together, at most`,
    );
  if (redirects.some(isNobodysOwn))
    throw new errors.InvalidRedirectUri(
      'redirect_uris: https, a scheme of the application, or http on loopback; no userinfo',
    );
  // Only native applications have addresses of their own on the user's machine (RFC 8252 section 7).
  if (redirects.some(isOfTheirMachine)) metadata.application_type = 'native';
  if (redirects.some(isOpenHttp))
    throw new errors.InvalidRedirectUri('redirect_uris: https, a scheme of the application, or http on loopback');
  if (typeof metadata.client_name === 'string') metadata.client_name = nameOf(metadata.client_name);
}

/** Whether an address holds a user name or a password, or belongs to a scheme that is no application's. */
function isNobodysOwn(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null;
  if (!url) return false;
  const isHierarchical = /^[^:]+:\//.test(url.href);
  return url.username !== '' || url.password !== '' || !isHierarchical || FOREIGN_SCHEMES.test(url.href);
}

function hasShortKey(jwks: unknown): boolean {
  const { keys } = (typeof jwks === 'object' && jwks !== null ? jwks : {}) as { keys?: unknown };
  if (!Array.isArray(keys)) return false;
  return keys.some(
    (key) => key?.kty === 'RSA' && typeof key.n === 'string' && Buffer.from(key.n, 'base64url').length < SHORTEST_RSA,
  );
}

/** Well-formed after it is cut, which may be in the middle of a character: what is on record is UTF-8. */
const nameOf = (given: string): string =>
  given
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .slice(0, MOST_NAME)
    .toWellFormed();

function isOfTheirMachine(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null;
  return url !== null && (url.protocol !== 'https:' || LOOPBACK_HOSTS.includes(url.hostname));
}

function isOpenHttp(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null;
  return url?.protocol === 'http:' && !LOOPBACK_HOSTS.includes(url.hostname);
}
