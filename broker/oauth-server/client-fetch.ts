/** Fetches client ID metadata documents and keys of clients: the only requests that unauthenticated clients can cause (SSRF). */
import Provider from 'oidc-provider';
import type { Broker } from '../broker.ts';
import { ProviderUnreachable, providerFetch } from '../egress/provider-fetch.ts';
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';

/** The largest document that is read. */
export const DOCUMENT_BYTES = 16 * 1024;
export const KEYS_BYTES = 64 * 1024;

/** How long documents and keys are cached for use when their site fails, and how many. */
const CACHE_MS = 24 * 3600 * 1000;
const MAX_ENTRIES = 200;
const MAX_CACHED_BYTES = 4 * 1024 * 1024;

/** Routes where a client presents tokens, without a person: a cached document is sufficient. An authorization needs the current one. */
const OF_TOKENS: ReadonlySet<unknown> = new Set(['token', 'revocation']);
/** The document does not exist (any more). Other errors do not mean that: the site may be down, or challenge clients that are not browsers. */
const GONE: ReadonlySet<number> = new Set([404, 410]);

/** Anybody can cause these requests, so addresses that the operator allowed for platforms are not allowed for them. */
const NOT_PUBLIC =
  'It is fetched only from public addresses, on port 443 or 8443, whatever AGENT_BROKER_ALLOW_PRIVATE lists. A client at another address has to register.';

type Kept = { body: string; type: string; at: Instant };

/**
 * Returns the library's `fetch`. Access tokens last as long as the library caches a document, so that almost every refresh fetches it again, and the
 * client's keys; a site that fails then would cause `invalid_client`, for which clients discard their tokens. So the last fetched ones are used.
 */
export function clientFetch({ publicOutbound, clock, log }: Pick<Broker, 'publicOutbound' | 'clock' | 'log'>) {
  const fetchKeys = providerFetch(publicOutbound);
  const fetchDocument = providerFetch(publicOutbound, ['cache-control', 'expires']);
  const last = recentlyUsed<Kept>(MAX_ENTRIES, MAX_CACHED_BYTES);

  /** Caches the response if it is the client's document, or keys, and not a maintenance page. The library validates the content. */
  const keep = async (url: string, answer: Response, isDocument: boolean): Promise<boolean> => {
    const body = await answer.clone().text();
    if (body.length > (isDocument ? DOCUMENT_BYTES : KEYS_BYTES)) return false;
    const { client_id: id, keys } = membersOf(body);
    if (isDocument ? id !== url : !Array.isArray(keys)) return false;
    last.set(url, { body, type: answer.headers.get('content-type') ?? '', at: clock() }, 2 * body.length);
    return true;
  };
  const lastOf = (url: string): Kept | undefined => {
    const kept = OF_TOKENS.has(Provider.ctx?.oidc?.route) ? last.get(url) : undefined;
    return kept && clock() - kept.at < CACHE_MS ? kept : undefined;
  };

  return async (input: string | URL | Request, { method = 'GET', headers, redirect }: RequestInit = {}) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith('https:')) throw new ProviderUnreachable('Only https URLs are fetched.');
    // For documents the library follows no redirects, and uses the cache lifetimes that are limited above; for keys it has no limits of its own.
    const isDocument = redirect === 'manual';
    const { host } = new URL(url);
    /** Returns the cached response; undefined when there is none that may be used for this request. */
    const failed = (problem: string, isGone: boolean): Response | undefined => {
      const kept = isGone ? undefined : lastOf(url);
      const what = isDocument ? 'a client id metadata document' : "a client's keys";
      const instead = isDocument ? ', and the last one is used' : ', and the last ones are used';
      log.warn({ host, problem }, `${what} could not be fetched${kept ? instead : ''}`);
      // Without cache headers, so that the next request fetches from the site again.
      return kept && new Response(kept.body, { status: 200, headers: { 'content-type': kept.type } });
    };
    try {
      const asked = {
        method,
        headers: Object.fromEntries([...new Headers(headers)].filter(([, value]) => value !== '')),
      };
      const answer = await (isDocument ? fetchDocument : fetchKeys)(url, asked);
      if (answer.status !== 200) return failed(`status ${answer.status}`, GONE.has(answer.status)) ?? answer;
      if (await keep(url, answer, isDocument)) return answer;
      return failed(isDocument ? 'it is not the document of this client' : 'there are no keys', false) ?? answer;
    } catch (error) {
      const isRefused = error instanceof ProviderUnreachable && error.code === 'address_refused';
      const kept = failed(isRefused ? NOT_PUBLIC : (error as Error).message.slice(0, 200), false);
      if (kept) return kept;
      throw error;
    }
  };
}

function membersOf(text: string): { client_id?: unknown; keys?: unknown } {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}
