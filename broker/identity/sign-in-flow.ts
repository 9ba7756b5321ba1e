/** What a sign-in at the identity provider has to remember until the browser is back: sealed, in a cookie. */
import type { IncomingMessage } from 'node:http';
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { openFromBrowser, sealForBrowser } from '../crypto/browser-seal.ts';
import { readCookie } from './session-cookie.ts';

export const CALLBACK_PATH = '/console/oidc/callback';
const PURPOSE = 'sign-in at the identity provider';
const SECONDS = 600;
const MOST_PAGE = 512;

const Flow = z.strictObject({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** Which of our pages the owner wanted to see. */
  page: z.string(),
  /** Id or name of the organisation that was asked for. */
  organisation: z.string().nullable(),
  /** Milliseconds since the epoch. */
  until: z.number(),
});

export type SignInFlow = Omit<z.infer<typeof Flow>, 'until'>;

/** `__Host-` would need the path `/`, and the rest of the broker has no use for it. */
const nameAt = (baseUrl: string): string => (baseUrl.startsWith('https:') ? '__Secure-svc_oidc' : 'svc_oidc');

/** `Set-Cookie` that keeps it for 10 minutes. Lax, because the browser comes back from another site. */
export function flowCookie(broker: Broker, flow: SignInFlow): string {
  const text = JSON.stringify({ ...flow, until: broker.clock() + SECONDS * 1000 });
  return cookie(broker.baseUrl, sealForBrowser(broker.vault.masterKeys(), PURPOSE, text), SECONDS);
}

/** `Set-Cookie` that forgets it. */
export const endedFlowCookie = (broker: Broker): string => cookie(broker.baseUrl, '', 0);

const cookie = (baseUrl: string, value: string, seconds: number): string =>
  `${nameAt(baseUrl)}=${value}; Path=${CALLBACK_PATH}; Max-Age=${seconds}; HttpOnly; SameSite=Lax${baseUrl.startsWith('https:') ? '; Secure' : ''}`;

/** What this browser began; undefined when it began nothing, or too long ago. */
export function readFlow(broker: Broker, request: IncomingMessage): SignInFlow | undefined {
  const sealed = readCookie(request, nameAt(broker.baseUrl));
  const text = sealed && openFromBrowser(broker.vault.masterKeys(), PURPOSE, sealed);
  if (!text) return undefined;
  const { until, ...flow } = Flow.parse(JSON.parse(text));
  return until > broker.clock() ? flow : undefined;
}

/** One of our own pages, to go to after signing in; `/console` for whatever is not one, so that nobody is led elsewhere. */
export function ownPage(text: string | null): string {
  const isOurs = /^\/(console|approve)(\/[\w.~-]+)*\/?(\?[\w.~=&%-]*)?(#[\w.~=&%/-]*)?$/;
  if (text === null || text.length > MOST_PAGE || !isOurs.test(text)) return '/console';
  // Not back to where one signs in, and no dot segments that a browser would resolve.
  return /^\/console\/(oidc|sign-in)\b|\/\.\.?([/?#]|$)/.test(text) ? '/console' : text;
}
