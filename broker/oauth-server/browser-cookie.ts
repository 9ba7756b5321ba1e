/**
 * Binds an authorization request of an MCP client to a browser. The library's own cookies contain only what the address of the consent page contains,
 * and any sibling host may set them: an attacker could begin a request, plant its cookies with an admin, and redeem the admin's consent. So
 * the request is also bound to a cookie of random bits that only the broker can set; its hash is stored.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { cookieNameAt, readCookie } from '../auth/session-cookie.ts';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { findOAuthRecord } from '../store/oauth-records.ts';

/** Lifetime of the cookie, longer than that of a request. */
const SECONDS = 3600;
const FORM = /^[A-Za-z0-9_-]{43}$/;

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith('https:');

const nameAt = (baseUrl: string): string => cookieNameAt(baseUrl, 'svc_client');

function cookieOf(request: IncomingMessage, baseUrl: string): string | undefined {
  const value = readCookie(request, nameAt(baseUrl));
  return value !== undefined && FORM.test(value) ? value : undefined;
}

/** Returns the hash of this browser's cookie; undefined without one. */
export function browserCookieHash(request: IncomingMessage | undefined, baseUrl: string): string | undefined {
  const value = request && cookieOf(request, baseUrl);
  return value === undefined ? undefined : sha256Hex(value);
}

/** Sets the cookie, in the response and also in the current request. Lax, because clients send people from other sites. */
export function setBrowserCookie(request: IncomingMessage, response: ServerResponse, baseUrl: string): void {
  const known = cookieOf(request, baseUrl);
  const pair = `${nameAt(baseUrl)}=${known ?? randomBytes(32).toString('base64url')}`;
  // Prepended, because the first cookie of a name counts, and there may be a malformed or empty one.
  if (known === undefined) request.headers.cookie = [pair, request.headers.cookie ?? []].flat().join('; ');
  response.appendHeader(
    'set-cookie',
    `${pair}; Path=/; Max-Age=${SECONDS}; HttpOnly; SameSite=Lax${isSecure(baseUrl) ? '; Secure' : ''}`,
  );
}

/** Whether the request with this uid began in the browser that sends this request. */
export async function beganInThisBrowser(
  { store, clock, baseUrl }: Pick<Broker, 'store' | 'clock' | 'baseUrl'>,
  request: IncomingMessage,
  uid: string,
): Promise<boolean> {
  const browser = browserCookieHash(request, baseUrl);
  if (browser === undefined) return false;
  return (await findOAuthRecord(store.db, 'Interaction', sha256Hex(uid), clock()))?.source === browser;
}
