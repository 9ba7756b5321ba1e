/** An entry point of the sidecar: which requests are served there, and what they map to at the broker. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { CallerProblem } from '../caller-problem.ts';
import type { HeldCalls } from './api-routes.ts';
import type { Forward } from './forward.ts';
import { isShown, withoutCredentials, withoutPlaceholder } from './placeholder.ts';
import { type ErrorForm, ONE_LINE, refuse, refuseStranger } from './refusal.ts';
import type { Route } from './routes.ts';

export type Entry = {
  /** Allowed values of `Host`; error messages name the first. */
  hosts: readonly string[];
  /** Whether clients of this entry point have shown the placeholder before (as for a proxy tunnel). */
  isShown: boolean;
  /** Maps a request to the broker. `at`: the value of `Host`, and the origin in front of the path. Undefined: not a route of this run. */
  routeOf(target: string, at: { host: string; origin: string }): Route | undefined;
  /** Whether the request belongs to the broker's own API and is forwarded. */
  isApi(method: string, target: string, host: string): boolean;
  /** For a request without a route: the list of what exists. */
  unknown: string;
  connectionOf(target: string, at: { host: string }): string | undefined;
};

/** `caller`: the value of `X-Svc-Caller` on every request; throws CallerProblem. `wait`: the value of `X-Svc-Wait` where a request has none. */
type Sidecar = {
  placeholder: string;
  forward: Forward;
  caller: (() => string) | undefined;
  wait: number | undefined;
  /** By connection: the error format of its platform. */
  errors: ReadonlyMap<string, ErrorForm>;
  /** The held calls of this run, shared by all entry points. */
  held: HeldCalls;
};

const WRONG_PLACEHOLDER = {
  status: 403,
  error: 'wrong_placeholder',
  detail:
    'Only the command of this run can use this address. Send the value of AGENT_BROKER_RUN_KEY, or of the tool’s own variable, where the key of the platform goes.',
};

/** In a URL that a client of AWS has signed, the placeholder is the access key id. */
const PRE_SIGNED = /[?&]X-Amz-Signature=/i;
const IN_ADDRESS = {
  ...WRONG_PLACEHOLDER,
  detail:
    'Pre-signed URLs are not accepted. Send the request with its key in a header, as the client does without a pre-signed URL.',
};

const NO_UPGRADE = {
  status: 501,
  error: 'not_implemented',
  detail: 'Connections that are upgraded (WebSocket, SPDY) are not passed on. Nothing was sent.',
};

/** h2c, which curl offers, is ignored as RFC 9110 section 7.8 allows. */
const isUpgrade = ({ headers: { upgrade, connection = '' } }: IncomingMessage): boolean =>
  upgrade !== undefined && /\bupgrade\b/i.test(connection) && !/^h2c?$/i.test(upgrade);

/** Returns the request listener of an entry point. */
export const answerAt =
  (entry: Entry, { placeholder, forward, caller, wait, errors, held }: Sidecar): RequestListener =>
  (request, response) => {
    const refusal = refusedSender(request, entry.hosts);
    if (refusal) return void refuseStranger(response, { status: 403, error: 'not_served', detail: refusal });
    const found = withoutPlaceholder(request.rawHeaders, placeholder);
    const target = request.url ?? '';
    // kubectl sends no key over plain HTTP, so its address contains the placeholder.
    const [, inPath, rest = ''] = (!entry.isShown && /^\/~([^/?]*)(.*)$/s.exec(target)) || [];
    if (!entry.isShown && !found.isShown && !(inPath !== undefined && isShown(inPath, placeholder)))
      return void refuseStranger(response, PRE_SIGNED.test(target) ? IN_ADDRESS : WRONG_PLACEHOLDER);
    const host = request.headers.host ?? '';
    const origin = `http://${host}${inPath === undefined ? '' : `/~${inPath}`}`;
    const asked = inPath === undefined ? target : rest;
    if (entry.isApi(request.method ?? '', asked, host))
      return askBroker(request, response, { forward, path: asked, found });
    const route = entry.routeOf(asked, { host, origin });
    const connection = route?.connection ?? entry.connectionOf(asked, { host });
    const form = route?.isGit ? ONE_LINE : connection === undefined ? undefined : errors.get(connection);
    if (route === undefined)
      return void refuse(response, { status: 404, error: 'not_found', detail: entry.unknown }, form);
    if (isUpgrade(request)) return void refuse(response, NO_UPGRADE, form);
    const person = personOf(request, caller);
    if ('error' in person) return void refuse(response, { status: 403, ...person }, form);
    // git sends headers of its settings (http.extraHeader) to every host, such as a key for another one.
    const headers = entry.isShown || route.isGit ? withoutCredentials(found.headers) : found.headers;
    if (wait !== undefined && request.headers[WAIT.toLowerCase()] === undefined) headers.push(WAIT, String(wait));
    forward(request, response, {
      path: route.path,
      headers: withHeaders(headers, {
        ...(person.caller !== undefined && { [CALLER]: person.caller }),
        [VIA]: 'run',
        [BASE_URL]: route.baseUrl,
      }),
      authorization: (token) =>
        route.isGit
          ? ['Authorization', `Basic ${basic(`connection.${route.connection}:${token}`)}`]
          : ['X-Svc-Authorization', `Bearer ${token}`],
      errors: form,
      heard: ({ [APPROVAL]: id }) => typeof id === 'string' && held.note(id),
    });
  };

/** Forwards a request of the broker's own API: for the agent without a caller, and without any other header made for credentials. */
function askBroker(
  request: IncomingMessage,
  response: ServerResponse,
  { forward, path, found }: { forward: Forward; path: string; found: { headers: string[] } },
): void {
  forward(request, response, {
    path,
    headers: withoutCredentials(found.headers),
    authorization: (token) => ['Authorization', `Bearer ${token}`],
    errors: undefined,
  });
}

const APPROVAL = 'x-svc-approval-id';
/** Marks requests of a run, whose command holds no key, so that refusals suggest what such a command can do. Grants nothing. */
const VIA = 'X-Svc-Via';
/** The broker replaces URLs of the platform in its answer by this one, so that the command sends the placeholder to the sidecar and nowhere else. */
const BASE_URL = 'X-Svc-Base-Url';
const CALLER = 'X-Svc-Caller';
const WAIT = 'X-Svc-Wait';

/**
 * Returns the caller of a request. A run that is for one person refuses requests for anybody else, whatever the command sends: an injected
 * text could otherwise make the command act for another person. `caller` undefined: the command may name a caller.
 */
function personOf(
  { headersDistinct }: IncomingMessage,
  configured: Sidecar['caller'],
): { caller: string | undefined } | { error: string; detail: string } {
  if (configured === undefined) return { caller: undefined };
  let caller: string;
  try {
    caller = configured();
  } catch (error) {
    if (!(error instanceof CallerProblem)) throw error;
    return { error: 'caller_unreadable', detail: `${error.message} Nothing was sent.` };
  }
  const named = headersDistinct[CALLER.toLowerCase()] ?? [];
  if (named.every((one) => one === caller)) return { caller };
  const detail =
    'This run is for one person, and the request names another one. Leave X-Svc-Caller out. Nothing was sent.';
  return { error: 'caller_differs', detail };
}

/** `headers`: names and values in turn. `added` replaces headers of the same names. */
function withHeaders(headers: readonly string[], added: Readonly<Record<string, string>>): string[] {
  const names = new Set(Object.keys(added).map((name) => name.toLowerCase()));
  const others = headers.filter((_, at) => !names.has(headers[at - (at % 2)]?.toLowerCase() ?? ''));
  return [...others, ...Object.entries(added).flat()];
}

/** Whether a browser sent the request. Node's own fetch sends Sec-Fetch-Mode, but only browsers send the site. */
export const isOfBrowser = ({ headers }: IncomingMessage): boolean =>
  headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;

/** Returns why a sender is refused whatever credentials it shows; undefined when it may be served. */
function refusedSender(request: IncomingMessage, hosts: readonly string[]): string | undefined {
  if (isOfBrowser(request)) return 'Browsers are not served.';
  const [host, another] = request.headersDistinct.host ?? [];
  if (host !== undefined && another === undefined && hosts.includes(host.toLowerCase())) return undefined;
  return `The Host header has to be ${hosts[0]}.`;
}

const basic = (pair: string): string => Buffer.from(pair).toString('base64');
