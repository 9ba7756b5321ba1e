/** The browser in which a person goes through a consent: a cookie of random bits, of which only the hash is stored. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { foreignOrigin, readCookie } from '../auth/session-cookie.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { Refusal } from './errors.ts';

const SECONDS = 3600;
const FORM = /^[A-Za-z0-9_-]{43}$/;

const nameOf = (baseUrl: string): string => (baseUrl.startsWith('https:') ? '__Host-svc_consent' : 'svc_consent');

/** The hash of this browser's cookie; undefined: it has none. */
export function browserHashOf(request: IncomingMessage, baseUrl: string): string | undefined {
  const value = readCookie(request, nameOf(baseUrl));
  return value !== undefined && FORM.test(value) ? sha256Hex(value) : undefined;
}

/** The hash, and the `Set-Cookie` that gives a browser without one its cookie. Lax, because callbacks come from other sites. */
export function browserCookie(request: IncomingMessage, baseUrl: string): { hash: string; cookies: string[] } {
  const known = browserHashOf(request, baseUrl);
  if (known !== undefined) return { hash: known, cookies: [] };
  const value = randomBytes(32).toString('base64url');
  const secure = baseUrl.startsWith('https:') ? '; Secure' : '';
  const cookie = `${nameOf(baseUrl)}=${value}; Path=/; Max-Age=${SECONDS}; HttpOnly; SameSite=Lax${secure}`;
  return { hash: sha256Hex(value), cookies: [cookie] };
}

/** Throws Refusal unless a form of our own pages sent it. */
export function checkOwnForm(request: IncomingMessage, baseUrl: string): void {
  const foreign = foreignOrigin(request, baseUrl);
  if (foreign !== undefined)
    throw new Refusal('forbidden', 'This request comes from another site. Use the page of the consent itself.');
}
