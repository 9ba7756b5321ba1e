/** What clients say of themselves, by registration or in a document, made to what is served here. */
import { errors, type Metadata } from 'oidc-provider';
import { CLIENT_AUTH_METHODS } from './metadata.ts';

/** The library calls us for members of its own; this one is of RFC 7591 section 2, and nothing is done with it. */
export const EXTRA_METADATA = ['software_id'];

const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];
const MOST_REDIRECTS = 20;
const MOST_NAME = 100;

/**
 * RFC 7591 section 2: the server may put other values in place of those that a client asked for, and tells it so. Who asks
 * for a secret is a public client here: a secret that anybody gets who asks proves nothing that PKCE does not. Scopes are
 * asked for at each authorization.
 *
 * @throws InvalidRedirectUri when a code would be sent over http elsewhere than to this very machine (RFC 8252 section 8.3)
 */
export function settleClientMetadata(metadata: Metadata): void {
  delete metadata.scope;
  // The library made one for whoever did not say that they want none.
  delete metadata.client_secret;
  delete metadata.client_secret_expires_at;
  if (!CLIENT_AUTH_METHODS.includes(metadata.token_endpoint_auth_method as never))
    metadata.token_endpoint_auth_method = 'none';
  if (metadata.jwks_uri !== undefined && !/^https:/i.test(String(metadata.jwks_uri)))
    throw new errors.InvalidClientMetadata('jwks_uri: https');
  const redirects = metadata.redirect_uris ?? [];
  if (!Array.isArray(redirects) || redirects.length > MOST_REDIRECTS)
    throw new errors.InvalidClientMetadata(`redirect_uris: a list of ${MOST_REDIRECTS} at most`);
  // Only native applications have addresses of their own on the user's machine (RFC 8252 section 7).
  if (redirects.some(isOfTheirMachine)) metadata.application_type = 'native';
  if (redirects.some(isOpenHttp))
    throw new errors.InvalidRedirectUri('redirect_uris: https, a scheme of the application, or http on loopback');
  if (typeof metadata.client_name === 'string') metadata.client_name = nameOf(metadata.client_name);
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
