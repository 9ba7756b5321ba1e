/** State of a sign-in at the identity provider until the callback: encrypted, in a cookie. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { openFromBrowser, sealForBrowser } from '../crypto/browser-seal.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { cookieNames, readCookie } from './session-cookie.ts';

export const CALLBACK_PATH = '/console/oidc/callback';
const PURPOSE = 'sign-in at the identity provider';
const SECONDS = 600;
const MAX_PAGE_LENGTH = 512;
/** Most concurrent sign-ins of one browser, in several tabs; beyond that the oldest are dropped. */
const MAX_FLOWS = 4;

const Flow = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** The page of the console to go to afterwards. */
  page: z.string(),
  /** Id or name of the requested organisation. */
  organisation: z.string().nullable(),
  /** The browser's previous session; the sign-in ends it, so that no copy stays valid. */
  replaces: z.strictObject({ organisation_id: z.string(), session_id: z.string(), expires_at: z.number() }).nullable(),
  /** Set when the provider was asked to sign the person in again, regardless of its own session. */
  reauthenticate: z.literal(true).optional(),
  /** Set when a page of another site sent the browser here, and named the organisation. */
  sentHere: z.literal(true).optional(),
  /** Expiry in milliseconds since the epoch. */
  until: z.number(),
});

export type SignInFlow = Omit<z.infer<typeof Flow>, 'until'>;

/**
 * With the `__Host-` prefix a browser accepts the cookie only from this host and over https (RFC 6265bis section 4.1.3.2). Otherwise a sibling host could
 * plant a sign-in that somebody else began, and sign the owner in as that person.
 */
const prefixAt = (baseUrl: string): string => (baseUrl.startsWith('https:') ? '__Host-svc_oidc_' : 'svc_oidc_');

/** One cookie for each sign-in, named by its state, so that other tabs and links do not affect it. */
const nameOf = (baseUrl: string, state: string): string => prefixAt(baseUrl) + sha256Hex(state).slice(0, 16);

/**
 * Returns `Set-Cookie` lines: one that keeps the flow for 10 minutes, and those that delete the oldest others, so that the cookies do not exceed
 * the header limit. Lax, because the callback comes from another site.
 */
export function flowCookies(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'vault'>,
  request: IncomingMessage,
  flow: SignInFlow,
): string[] {
  const { baseUrl } = broker;
  const text = JSON.stringify({ ...flow, until: broker.clock() + SECONDS * 1000 });
  const sealed = sealForBrowser(broker.vault.masterKeys(), PURPOSE, text);
  const others = cookieNames(request)
    .filter((name) => name.startsWith(prefixAt(baseUrl)))
    .map((name) => ({ name, until: openFlow(broker, readCookie(request, name))?.until ?? 0 }))
    .sort((one, other) => other.until - one.until);
  return [
    cookie(baseUrl, nameOf(baseUrl, flow.state), sealed, SECONDS),
    ...others.slice(MAX_FLOWS - 1).map(({ name }) => cookie(baseUrl, name, '', 0)),
  ];
}

/** Returns `Set-Cookie` that deletes the flow. */
export const endedFlowCookie = ({ baseUrl }: Pick<Broker, 'baseUrl'>, { state }: SignInFlow): string =>
  cookie(baseUrl, nameOf(baseUrl, state), '', 0);

const cookie = (baseUrl: string, name: string, value: string, seconds: number): string =>
  `${name}=${value}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`;

/** Returns this browser's flow with the state of this callback; undefined when there is none, or it has expired. */
export function readFlow(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'vault'>,
  request: IncomingMessage,
  query: URLSearchParams,
): SignInFlow | undefined {
  const [state, ...more] = query.getAll('state');
  if (state === undefined || more.length > 0) return undefined;
  const found = openFlow(broker, readCookie(request, nameOf(broker.baseUrl, state)));
  if (!found || found.until <= broker.clock()) return undefined;
  const { until: _until, ...flow } = found;
  return flow;
}

function openFlow(broker: Pick<Broker, 'vault'>, sealed: string | undefined): z.infer<typeof Flow> | undefined {
  const text = sealed && openFromBrowser(broker.vault.masterKeys(), PURPOSE, sealed);
  return text ? Flow.parse(JSON.parse(text)) : undefined;
}

/** Returns the page to go to after signing in; `/console` for anything that is not a page for owners (no open redirect). */
export function ownPage(text: string | null): string {
  const isOurs = /^\/(console|approve|oauth\/consent)(\/[\w.~-]+)*\/?(\?[\w.~=&%-]*)?(#[\w.~=&%/-]*)?$/;
  if (text === null || text.length > MAX_PAGE_LENGTH || !isOurs.test(text)) return '/console';
  // Not back to the sign-in pages, and no dot segments that a browser would resolve.
  return /^\/console\/(oidc|sign-in)\b|\/\.\.?([/?#]|$)/.test(text) ? '/console' : text;
}
