/**
 * The browser in which an MCP client asks. The library's own cookies hold what the address of the consent page says, and any host beside ours
 * may set them: whoever began a request could plant them with an admin, and redeem what that one allows. So the request also belongs to a
 * cookie of random bits that only we can set, of which the hash is stored.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { readCookie } from '../auth/session-cookie.ts';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { findOAuthRecord } from '../store/oauth-records.ts';

/** A request is good for less. */
const SECONDS = 3600;
const FORM = /^[A-Za-z0-9_-]{43}$/;

const isSecure = (baseUrl: string): boolean => baseUrl.startsWith('https:');

/** With the prefix a browser accepts it only from this host and over https (RFC 6265bis section 4.1.3.2). */
const nameAt = (baseUrl: string): string => (isSecure(baseUrl) ? '__Host-svc_client' : 'svc_client');

function cookieOf(request: IncomingMessage, baseUrl: string): string | undefined {
  const value = readCookie(request, nameAt(baseUrl));
  return value !== undefined && FORM.test(value) ? value : undefined;
}

/** The hash of this browser's cookie; undefined: it has none. */
export function askingBrowser(request: IncomingMessage | undefined, baseUrl: string): string | undefined {
  const value = request && cookieOf(request, baseUrl);
  return value === undefined ? undefined : sha256Hex(value);
}

/** Gives the browser its cookie, and the request as if it had had it already. Lax, because clients send people from other sites. */
export function giveCookie(request: IncomingMessage, response: ServerResponse, baseUrl: string): void {
  const known = cookieOf(request, baseUrl);
  const pair = `${nameAt(baseUrl)}=${known ?? randomBytes(32).toString('base64url')}`;
  // First: of two with the name, as an empty one or one of another form, the first counts.
  if (known === undefined) request.headers.cookie = [pair, request.headers.cookie ?? []].flat().join('; ');
  response.appendHeader(
    'set-cookie',
    `${pair}; Path=/; Max-Age=${SECONDS}; HttpOnly; SameSite=Lax${isSecure(baseUrl) ? '; Secure' : ''}`,
  );
}

/** Whether the request with this uid began in the browser that sends this. */
export async function beganHere(
  { store, clock, baseUrl }: Pick<Broker, 'store' | 'clock' | 'baseUrl'>,
  request: IncomingMessage,
  uid: string,
): Promise<boolean> {
  const browser = askingBrowser(request, baseUrl);
  if (browser === undefined) return false;
  return (await findOAuthRecord(store.db, 'Interaction', sha256Hex(uid), clock()))?.source === browser;
}
