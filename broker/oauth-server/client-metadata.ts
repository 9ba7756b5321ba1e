/** Validates and normalises client metadata, from registration or from a client ID metadata document. */
import { type AllClientMetadata, errors } from 'oidc-provider';
import { CLIENT_AUTH_METHODS, GRANT_TYPES, RESPONSE_TYPES } from './metadata.ts';

/** Additional member to accept (RFC 7591 section 2); it is ignored. */
export const EXTRA_METADATA = ['software_id'];

export const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
const MAX_REDIRECTS = 20;
/** In characters: of one redirect URI, and of all redirect URIs of a client. */
const MAX_REDIRECT_LENGTH = 1_024;
const MAX_REDIRECT_TEXT_LENGTH = 4_096;
/** Schemes that browsers and operating systems handle, which are not private to an application (RFC 8252 section 7.1). */
const FOREIGN_SCHEMES =
  /^(ftps?|sftp|wss?|mailto|tel|sms|view-source|javascript|vbscript|data|file|blob|filesystem|about|chrome|jar|ldaps?|smb|ssh|telnet):/i;
/** Shortest RSA modulus (RFC 7518 section 3.3), in bytes. */
const SHORTEST_RSA = 2048 / 8;
const MAX_NAME_LENGTH = 100;

/**
 * Validates and normalises metadata in place (RFC 7591 section 2: the server may replace requested values, and returns the result). A client that
 * requests a secret becomes a public client: a secret that anyone can obtain proves nothing beyond PKCE. Scopes are requested at each
 * authorization.
 *
 * @throws InvalidClientMetadata for unsupported metadata, for metadata that would make this process send requests, and when a code would be sent
 * over http to another address than loopback (RFC 8252 section 8.3). Answered as `invalid_redirect_uri` where its text begins with
 * `redirect_uris`; the library's `InvalidRedirectUri` accepts no text, and says that a redirect URI is none of those that were registered.
 */
export function normaliseClientMetadata(metadata: AllClientMetadata): void {
  // Some clients write members that they do not have as null or as an empty text.
  for (const [member, value] of Object.entries(metadata)) if (value === null || value === '') delete metadata[member];
  delete metadata.scope;
  // For OpenID Connect only, without which the library would refuse every request of the client.
  delete metadata.default_max_age;
  delete metadata.require_auth_time;
  // The library generates a secret unless the client declares that it uses none.
  delete metadata.client_secret;
  delete metadata.client_secret_expires_at;
  if (!CLIENT_AUTH_METHODS.includes(metadata.token_endpoint_auth_method as never))
    metadata.token_endpoint_auth_method = 'none';
  // Clients list everything that they support anywhere. The library drops unsupported values from a document, but not from a registration.
  metadata.grant_types = supportedOf(metadata.grant_types, GRANT_TYPES);
  metadata.response_types = supportedOf(metadata.response_types, RESPONSE_TYPES);
  if (metadata.jwks_uri !== undefined && !/^https:/i.test(String(metadata.jwks_uri)))
    throw new errors.InvalidClientMetadata('jwks_uri: https');
  // The library would fetch this URL. Pairwise subjects, its purpose, are not supported.
  if (metadata.sector_identifier_uri !== undefined)
    throw new errors.InvalidClientMetadata('sector_identifier_uri: not supported');
  if (hasShortKey(metadata.jwks))
    throw new errors.InvalidClientMetadata('jwks: an RSA key must have at least 2048 bits');
  const redirects = metadata.redirect_uris ?? [];
  if (!Array.isArray(redirects) || redirects.length > MAX_REDIRECTS)
    throw new errors.InvalidClientMetadata(`redirect_uris: a list of at most ${MAX_REDIRECTS}`);
  if (
    redirects.join('').length > MAX_REDIRECT_TEXT_LENGTH ||
    redirects.some((uri) => String(uri).length > MAX_REDIRECT_LENGTH)
  )
    throw new errors.InvalidClientMetadata(
      `redirect_uris: ${MAX_REDIRECT_LENGTH} characters each, and ${MAX_REDIRECT_TEXT_LENGTH} together, at most`,
    );
  if (redirects.some(isForbiddenUri))
    throw new errors.InvalidClientMetadata(
      'redirect_uris: https, a scheme of the application, or http on loopback; no userinfo',
    );
  // Only native applications have redirect URIs on the user's machine (RFC 8252 section 7).
  if (redirects.some(isOfTheirMachine)) metadata.application_type = 'native';
  if (redirects.some(isOpenHttp))
    throw new errors.InvalidClientMetadata('redirect_uris: https, a scheme of the application, or http on loopback');
  if (typeof metadata.client_name === 'string') metadata.client_name = nameOf(metadata.client_name);
}

/** Removes unsupported values; keeps all of them when none is supported, which the library then refuses. */
function supportedOf<Given>(given: Given, supported: readonly string[]): Given {
  const left = Array.isArray(given) ? given.filter((one) => supported.includes(one)) : [];
  return left.length > 0 ? (left as Given) : given;
}

/** Whether a URI has userinfo, or a scheme that is not private to an application. */
function isForbiddenUri(uri: unknown): boolean {
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

/** Truncated, and well-formed even if that splits a surrogate pair: audit rows are UTF-8. */
const nameOf = (given: string): string =>
  given
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .slice(0, MAX_NAME_LENGTH)
    .toWellFormed();

function isOfTheirMachine(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null;
  return url !== null && (url.protocol !== 'https:' || LOOPBACK_HOSTS.includes(url.hostname));
}

function isOpenHttp(uri: unknown): boolean {
  const url = typeof uri === 'string' ? URL.parse(uri) : null;
  return url?.protocol === 'http:' && !LOOPBACK_HOSTS.includes(url.hostname);
}
