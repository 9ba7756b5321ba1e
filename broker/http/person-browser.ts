/** Cookies of a person's browser, for a consent and for the page of what the person gave: random values, of which only the hash is stored. */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { PersonSignIn } from '../admin/people/person-sign-in.ts';
import { cookieNameAt, foreignOrigin, readCookie } from '../auth/session-cookie.ts';
import type { Broker } from '../broker.ts';
import { openFromBrowser, sealForBrowser } from '../crypto/browser-seal.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { SessionCookie } from '../people/sessions.ts';
import { SignInState } from '../people/sign-in.ts';
import { Refusal } from './errors.ts';

/** `svc_consent`: goes through a consent. `svc_person`: may see what was given. `svc_person_flow`: is signing in to see it. */
type Name = 'svc_consent' | 'svc_person' | 'svc_person_flow';

const CONSENT_SECONDS = 3600;
/** For people who signed in, the session ends earlier (people/sessions.ts). */
const SESSION_SECONDS = 30 * 24 * 3600;
const FLOW_SECONDS = 600;
const FORM = /^[A-Za-z0-9_-]{43}$/;
const PURPOSE = 'sign-in of a person';

/** Builds `Set-Cookie`. Lax, because callbacks and links in messages come from other sites. */
const cookie = (baseUrl: string, name: Name, value: string, seconds: number): string =>
  `${cookieNameAt(baseUrl, name)}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`;

function hashIn(request: IncomingMessage, baseUrl: string, name: Name): string | undefined {
  const value = readCookie(request, cookieNameAt(baseUrl, name));
  return value !== undefined && FORM.test(value) ? sha256Hex(value) : undefined;
}

/** Returns the hash of this browser's consent cookie; undefined when it has none. */
export const browserHashOf = (request: IncomingMessage, baseUrl: string): string | undefined =>
  hashIn(request, baseUrl, 'svc_consent');

/** Returns the hash of the consent cookie, and the `Set-Cookie` for a browser that has none yet. */
export function browserCookie(request: IncomingMessage, baseUrl: string): { hash: string; cookies: string[] } {
  const known = browserHashOf(request, baseUrl);
  if (known !== undefined) return { hash: known, cookies: [] };
  const value = randomBytes(32).toString('base64url');
  return { hash: sha256Hex(value), cookies: [cookie(baseUrl, 'svc_consent', value, CONSENT_SECONDS)] };
}

/** Returns the hash of the cookie with which this browser may see what was given; undefined when it has none. */
export const sessionHashOf = (request: IncomingMessage, baseUrl: string): string | undefined =>
  hashIn(request, baseUrl, 'svc_person');

/**
 * Issues a new session cookie each time, so that a cookie planted by somebody else reveals nothing (session fixation). `value`: 32 bytes in
 * base64url, for requests that may be sent twice and need the same cookie.
 */
export function newSessionCookie(
  request: IncomingMessage,
  baseUrl: string,
  value = randomBytes(32).toString('base64url'),
): SessionCookie & { cookies: string[] } {
  const cookies = [cookie(baseUrl, 'svc_person', value, SESSION_SECONDS)];
  return { hash: sha256Hex(value), replaces: sessionHashOf(request, baseUrl), cookies };
}

export const endedSessionCookie = (baseUrl: string): string => cookie(baseUrl, 'svc_person', '', 0);

const Flow = SignInState.extend({
  organisation: z.string(),
  issuer: z.string(),
  /** Milliseconds since the epoch. */
  until: z.number(),
});

/** Returns the `Set-Cookie` that keeps a sign-in for 10 minutes, sealed; a later one in the same browser replaces it. */
export function personFlowCookie(
  { vault, clock, baseUrl }: Pick<Broker, 'baseUrl' | 'clock' | 'vault'>,
  flow: PersonSignIn,
): string {
  const text = JSON.stringify({ ...flow, until: clock() + FLOW_SECONDS * 1000 } satisfies z.infer<typeof Flow>);
  return cookie(baseUrl, 'svc_person_flow', sealForBrowser(vault.masterKeys(), PURPOSE, text), FLOW_SECONDS);
}

/** Returns this browser's sign-in that a callback belongs to; undefined when there is none. */
export function readPersonFlow(
  { vault, clock, baseUrl }: Pick<Broker, 'baseUrl' | 'clock' | 'vault'>,
  request: IncomingMessage,
  query: URLSearchParams,
): PersonSignIn | undefined {
  const sealed = readCookie(request, cookieNameAt(baseUrl, 'svc_person_flow'));
  const text = sealed && openFromBrowser(vault.masterKeys(), PURPOSE, sealed);
  if (!text) return undefined;
  const read = Flow.safeParse(JSON.parse(text));
  // Written by another version of this broker.
  if (!read.success) return undefined;
  const { until, ...flow } = read.data;
  const states = query.getAll('state');
  return until > clock() && states.length === 1 && states[0] === flow.state ? flow : undefined;
}

export const endedPersonFlow = ({ baseUrl }: Pick<Broker, 'baseUrl'>): string =>
  cookie(baseUrl, 'svc_person_flow', '', 0);

/** Throws Refusal unless the request was sent by a form of our own pages. */
export function checkOwnForm(request: IncomingMessage, baseUrl: string): void {
  const foreign = foreignOrigin(request, baseUrl);
  if (foreign !== undefined)
    throw new Refusal('forbidden', 'This request comes from another site. Use the page itself.');
}
