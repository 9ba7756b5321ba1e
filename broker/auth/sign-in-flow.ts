/** What a sign-in at the identity provider has to remember until the browser is back: sealed, in a cookie. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { openFromBrowser, sealForBrowser } from '../crypto/browser-seal.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { cookieNames, readCookie } from './session-cookie.ts';

export const CALLBACK_PATH = '/console/oidc/callback';
const PURPOSE = 'sign-in at the identity provider';
const SECONDS = 600;
const MOST_PAGE = 512;
/** Sign-ins that one browser has under way at once, in several tabs; an older one is given up. */
const MOST_FLOWS = 4;
/** Where they start and end, so that a start sees how many there are. */
const PATH = '/console/oidc';

const Flow = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Which of our pages the owner wanted to see. */
  page: z.string(),
  /** Id or name of the organisation that was asked for. */
  organisation: z.string().nullable(),
  /** The session that this browser had; it ends with the sign-in, so that nobody has a copy of it left. */
  replaces: z.strictObject({ organisation_id: z.string(), session_id: z.string(), expires_at: z.number() }).nullable(),
  /** Milliseconds since the epoch. */
  until: z.number(),
});

export type SignInFlow = Omit<z.infer<typeof Flow>, 'until'>;

/** `__Host-` would need the path `/`, and the rest of the broker has no use for it. */
const prefixAt = (baseUrl: string): string => (baseUrl.startsWith('https:') ? '__Secure-svc_oidc_' : 'svc_oidc_');

/** One cookie for each sign-in, named by its state: another tab, or a link from anywhere, does not touch it. */
const nameOf = (baseUrl: string, state: string): string => prefixAt(baseUrl) + sha256Hex(state).slice(0, 16);

/**
 * `Set-Cookie` lines: one that keeps it for 10 minutes, and what gives up the oldest others, so that the cookies never fill a
 * request. Lax, because the browser comes back from another site.
 */
export function flowCookies(broker: Broker, request: IncomingMessage, flow: SignInFlow): string[] {
  const { baseUrl } = broker;
  const text = JSON.stringify({ ...flow, until: broker.clock() + SECONDS * 1000 });
  const sealed = sealForBrowser(broker.vault.masterKeys(), PURPOSE, text);
  const others = cookieNames(request)
    .filter((name) => name.startsWith(prefixAt(baseUrl)))
    .map((name) => ({ name, until: openFlow(broker, readCookie(request, name))?.until ?? 0 }))
    .sort((one, other) => other.until - one.until);
  return [
    cookie(baseUrl, nameOf(baseUrl, flow.state), sealed, SECONDS),
    ...others.slice(MOST_FLOWS - 1).map(({ name }) => cookie(baseUrl, name, '', 0)),
  ];
}

/** `Set-Cookie` that forgets it. */
export const endedFlowCookie = ({ baseUrl }: Broker, { state }: SignInFlow): string =>
  cookie(baseUrl, nameOf(baseUrl, state), '', 0);

const cookie = (baseUrl: string, name: string, value: string, seconds: number): string =>
  `${name}=${value}; Path=${PATH}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`;

/** What this browser began with the state of this answer; undefined when it began nothing such, or too long ago. */
export function readFlow(broker: Broker, request: IncomingMessage, query: URLSearchParams): SignInFlow | undefined {
  const [state, ...more] = query.getAll('state');
  if (state === undefined || more.length > 0) return undefined;
  const found = openFlow(broker, readCookie(request, nameOf(broker.baseUrl, state)));
  if (!found || found.until <= broker.clock()) return undefined;
  const { until: _until, ...flow } = found;
  return flow;
}

function openFlow(broker: Broker, sealed: string | undefined): z.infer<typeof Flow> | undefined {
  const text = sealed && openFromBrowser(broker.vault.masterKeys(), PURPOSE, sealed);
  return text ? Flow.parse(JSON.parse(text)) : undefined;
}

/** One of our own pages, to go to after signing in; `/console` for whatever is not one, so that nobody is led elsewhere. */
export function ownPage(text: string | null): string {
  const isOurs = /^\/(console|approve)(\/[\w.~-]+)*\/?(\?[\w.~=&%-]*)?(#[\w.~=&%/-]*)?$/;
  if (text === null || text.length > MOST_PAGE || !isOurs.test(text)) return '/console';
  // Not back to where one signs in, and no dot segments that a browser would resolve.
  return /^\/console\/(oidc|sign-in)\b|\/\.\.?([/?#]|$)/.test(text) ? '/console' : text;
}
