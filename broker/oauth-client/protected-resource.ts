/** Finds the authorization servers that an MCP server trusts: by protected resource metadata (RFC 9728), or by the earlier conventions. */

import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { type BearerChallenge, readBearerChallenge } from '../egress/bearer-challenge.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { Unreachable } from '../egress/unreachable.ts';
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import type { ServerFinder } from './server.ts';

export type ProtectedResource = {
  /** The resource indicator (RFC 8707). */
  resource: string;
  /** The issuers of its authorization servers, in its order; not empty. */
  issuers: readonly [string, ...string[]];
  /** The scopes to request where the manifest names none: `scope` of the challenge, otherwise `scopes_supported`; empty when absent. */
  scopes: readonly string[];
};

/** `fresh`: fetch from the server, ignoring the cache. */
export type ResourceFinder = (
  baseUrl: string,
  options: { fresh: boolean },
) => Promise<ProtectedResource | OAuthProblem>;

const Metadata = z.object({
  resource: z.string().max(2048),
  authorization_servers: z.array(z.string().max(2048)).min(1),
  scopes_supported: z.array(z.string().max(200)).max(200).optional(),
});

const FRESH_MS = 10 * 60_000;
const CACHE_SIZE = 200;
const LIMITS = { maxResponseBytes: 256 * 1024, totalTimeoutMs: 10_000 };

/** Fetches the metadata through the egress guard; cached for a while, by address. */
export function resourceFinder(
  { outbound, clock }: Pick<Broker, 'outbound' | 'clock'>,
  find: ServerFinder,
): ResourceFinder {
  const kept = recentlyUsed<{ found: ProtectedResource; at: Instant }>(CACHE_SIZE);

  /** `absent`: there is no document. Servers that require a token everywhere answer 401 for unknown paths. */
  const read = async (address: string, baseUrl: string): Promise<ProtectedResource | 'absent' | 'unusable'> => {
    const answer = await outbound.send({
      url: new URL(address),
      method: 'GET',
      headers: { 'user-agent': 'agent-broker', accept: 'application/json' },
      ...LIMITS,
    });
    if (answer.kind !== 'answer') return 'unusable';
    if (answer.status !== 200) return answer.status >= 400 && answer.status < 500 ? 'absent' : 'unusable';
    const { success, data } = Metadata.safeParse(jsonIn(answer.body.toString('utf8')));
    if (!success || !covers(data.resource, baseUrl)) return 'unusable';
    const [first, ...more] = data.authorization_servers.filter((one) => mayBeIssuer(one, baseUrl));
    if (first === undefined) return 'unusable';
    return { resource: data.resource, issuers: [first, ...more], scopes: data.scopes_supported ?? [] };
  };

  const discover = async (baseUrl: string): Promise<ProtectedResource | Unreachable | undefined> => {
    const pinged = await ping(outbound, baseUrl);
    const { metadata: named, scopes } = challengeIn(pinged);
    const { origin: issuer, host } = new URL(baseUrl);
    let isAbsent = named === undefined;
    for (const address of [...(named !== undefined && isAt(issuer, named) ? [named] : []), ...wellKnown(baseUrl)]) {
      const found = await read(address, baseUrl);
      if (typeof found === 'object') return scopes.length > 0 ? { ...found, scopes } : found;
      isAbsent &&= found === 'absent';
    }
    // Nothing is known of a server that did not answer: neither a token nor an issuer would help.
    if (pinged.kind === 'unreachable') return pinged;
    if (!isAbsent) return undefined;
    // MCP 2025-03-26, Authorization 2.3: the server is its own authorization server, with metadata at its origin.
    const metadata = await find({ issuer, endpoints: {}, platformId: host, isMcp: true });
    return isProblem(metadata) ? undefined : { resource: baseUrl, issuers: [issuer], scopes };
  };

  return async (baseUrl, { fresh }) => {
    const known = kept.get(baseUrl);
    if (!fresh && known && Math.abs(clock() - known.at) < FRESH_MS) return known.found;
    const found = await discover(baseUrl);
    const { host } = new URL(baseUrl);
    if (found && 'kind' in found)
      return {
        problem: 'unreachable',
        detail: `${host} could not be asked for its authorization server. ${found.detail}`,
      };
    if (found) {
      kept.set(baseUrl, { found, at: clock() });
      return found;
    }
    return {
      problem: 'failed',
      detail: `${host} publishes no authorization server that it trusts (RFC 9728). Name its issuer in the manifest.`,
    };
  };
}

/** Harmless: a ping needs no session, and starts none. Many servers do not support GET, and answer 405 before they require a token. */
const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}';

const ping = (outbound: Outbound, baseUrl: string): ReturnType<Outbound['send']> =>
  outbound.send({
    url: new URL(baseUrl),
    method: 'POST',
    headers: {
      'user-agent': 'agent-broker',
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
    },
    body: PING,
    ...LIMITS,
  });

/** Reads the challenge of a 401: the metadata URL (RFC 9728 section 5.1), and the scopes that the server requires (RFC 6750 section 3). */
function challengeIn(answer: Awaited<ReturnType<Outbound['send']>>): Pick<BearerChallenge, 'metadata' | 'scopes'> {
  const isChallenge = answer.kind === 'answer' && answer.status === 401;
  return readBearerChallenge(isChallenge ? answer.headers['www-authenticate'] : undefined);
}

/** A challenge may not lead to another host. */
const isAt = (origin: string, address: string): boolean => URL.parse(address)?.origin === origin;

/**
 * Returns the well-known URLs (RFC 9728 section 3.1): with the path of the server appended; and without it, for servers that have a host of their own.
 */
function wellKnown(baseUrl: string): string[] {
  const { origin, pathname } = new URL(baseUrl);
  const root = `${origin}/.well-known/oauth-protected-resource`;
  return pathname === '/' ? [root] : [root + pathname.replace(/\/$/, ''), root];
}

/** Whether the metadata's resource is this address or contains it (RFC 9728 section 3.3). */
function covers(resource: string, baseUrl: string): boolean {
  if (!URL.canParse(resource)) return false;
  const [one, other] = [new URL(resource), new URL(baseUrl)];
  const path = one.pathname.replace(/\/$/, '');
  const isBelow = other.pathname.replace(/\/$/, '') === path || other.pathname.startsWith(`${path}/`);
  return one.origin === other.origin && isBelow && one.search === '' && one.hash === '';
}

/** Whether an issuer's URL is allowed: https, or http where the server itself is on loopback. */
function mayBeIssuer(issuer: string, baseUrl: string): boolean {
  if (!URL.canParse(issuer)) return false;
  const { protocol, username, password, search, hash } = new URL(issuer);
  const secure = protocol === 'https:' || (protocol === 'http:' && baseUrl.startsWith('http:'));
  return secure && username + password + search + hash === '';
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
