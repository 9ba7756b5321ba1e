/** Protected resource metadata (RFC 9728): which authorization server an MCP server trusts. */

import { z } from 'zod';
import type { Broker } from '../broker.ts';
import type { Outbound } from '../egress/dispatcher.ts';
import type { Instant } from '../policy/facts.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { OAuthProblem } from './problem.ts';

export type ProtectedResource = {
  /** The resource indicator (RFC 8707). */
  resource: string;
  /** The issuer of its authorization server. */
  issuer: string;
  /** `scopes_supported`; empty when absent. */
  scopes: readonly string[];
};

export type ResourceFinder = (baseUrl: string) => Promise<ProtectedResource | OAuthProblem>;

const Metadata = z.object({
  resource: z.string().max(2048),
  authorization_servers: z.array(z.string().max(2048)).min(1),
  scopes_supported: z.array(z.string().max(200)).max(200).optional(),
});

const FRESH_MS = 10 * 60_000;
const KEPT = 200;
const LIMITS = { maxResponseBytes: 256 * 1024, totalTimeoutMs: 10_000 };

/** Fetches the metadata through the egress guard; cached for a while, by address. */
export function resourceFinder({ outbound, clock }: Pick<Broker, 'outbound' | 'clock'>): ResourceFinder {
  const kept = recentlyUsed<{ found: ProtectedResource; at: Instant }>(KEPT);

  const read = async (address: string, baseUrl: string): Promise<ProtectedResource | undefined> => {
    const answer = await outbound.send({
      url: new URL(address),
      method: 'GET',
      headers: { 'user-agent': 'agent-broker', accept: 'application/json' },
      ...LIMITS,
    });
    if (answer.kind !== 'answer' || answer.status !== 200) return undefined;
    const { success, data } = Metadata.safeParse(jsonIn(answer.body.toString('utf8')));
    if (!success || !covers(data.resource, baseUrl)) return undefined;
    const issuer = data.authorization_servers.find((one) => mayBeIssuer(one, baseUrl));
    return issuer === undefined ? undefined : { resource: data.resource, issuer, scopes: data.scopes_supported ?? [] };
  };

  return async (baseUrl) => {
    const known = kept.get(baseUrl);
    if (known && Math.abs(clock() - known.at) < FRESH_MS) return known.found;
    for (const address of [await challengeOf(outbound, baseUrl), ...wellKnown(baseUrl)]) {
      const found = address === undefined ? undefined : await read(address, baseUrl);
      if (!found) continue;
      kept.set(baseUrl, { found, at: clock() });
      return found;
    }
    return {
      problem: 'failed',
      detail: `${new URL(baseUrl).host} publishes no authorization server that it trusts (RFC 9728). Name its issuer in the manifest.`,
    };
  };
}

/** The metadata URL from the challenge of a 401 (RFC 9728 section 5.1), if it is allowed. */
async function challengeOf(outbound: Outbound, baseUrl: string): Promise<string | undefined> {
  const answer = await outbound.send({
    url: new URL(baseUrl),
    method: 'GET',
    headers: { 'user-agent': 'agent-broker', accept: 'application/json, text/event-stream' },
    ...LIMITS,
  });
  if (answer.kind !== 'answer' || answer.status !== 401) return undefined;
  const challenge = [answer.headers['www-authenticate'] ?? []].flat().join(', ');
  const address = /\bresource_metadata="([^"\\]{1,2048})"/i.exec(challenge)?.[1];
  return address !== undefined && URL.canParse(address) && new URL(address).origin === new URL(baseUrl).origin
    ? address
    : undefined;
}

/** RFC 9728 section 3.1: the well-known path inserted before the path; and without the path, for servers that are alone on their host. */
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

/** https, or http where the server itself is on loopback. */
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
