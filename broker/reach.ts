/** Whether owners could open the broker's links on another device. Judged by the broker's own address and by recorded visits; no request is made. */
import { isIP } from 'node:net';
import type { Broker } from './broker.ts';
import { classifyAddress } from './egress/address.ts';
import type { Instant } from './policy/facts.ts';
import { findMeta, putMeta } from './store/meta.ts';

export type ReachWarning = {
  code: 'loopback' | 'private' | 'plain_http' | 'nobody_from_elsewhere';
  /** The warning with advice, for a person. */
  text: string;
};

const LAST_VISIT = 'last_visit_from_elsewhere';
const DAY_MS = 24 * 3600 * 1000;
const WRITE_INTERVAL_MS = 60_000;
/** Names that no public server answers to (RFC 6762, RFC 8375, RFC 6761, and names that routers assign). */
const LOCAL_NAME = /(?:^[^.]+|\.(?:local|home\.arpa|internal|lan|home|intranet|test))$/;

/** Returns why other devices could not open this address, judged by its text alone; undefined when nothing is wrong. */
export function addressWarning(baseUrl: string): ReachWarning | undefined {
  const { hostname, protocol } = new URL(baseUrl);
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const kind = isIP(host) === 0 ? undefined : classifyAddress(host);
  if (host === 'localhost' || host.endsWith('.localhost') || (typeof kind === 'object' && kind.refused === 'loopback'))
    return {
      code: 'loopback',
      text: `Links lead to ${hostname}, which only this machine can open: set BASE_URL to an address that your phone can open.`,
    };
  if (typeof kind === 'object' || (kind === undefined && LOCAL_NAME.test(host)))
    return {
      code: 'private',
      text: `Links lead to ${hostname}, which can be opened in its own network only: where your phone is elsewhere, set BASE_URL to an address that it can open.`,
    };
  if (protocol === 'http:')
    return {
      code: 'plain_http',
      text: 'Links lead to plain http: anybody on the network can read the traffic, and browsers offer neither passkeys nor notices there. Put https in front, and set BASE_URL to it.',
    };
  return undefined;
}

/** Returns all current warnings, for the owners. */
export async function reachWarnings({
  store,
  clock,
  baseUrl,
}: Pick<Broker, 'store' | 'clock' | 'baseUrl'>): Promise<ReachWarning[]> {
  const address = addressWarning(baseUrl);
  const last = Number((await findMeta(store.db, LAST_VISIT)) ?? 0);
  if (last > clock() - DAY_MS) return address ? [address] : [];
  const nobody: ReachWarning = {
    code: 'nobody_from_elsewhere',
    text: 'Within a day nobody opened a page of the console from another machine. Try it: open the link on your phone. Behind a proxy or tunnel on this machine set TRUSTED_PROXIES=127.0.0.1, or all visitors seem to come from this machine.',
  };
  // A loopback address cannot be opened from elsewhere anyway, so the second warning would add nothing.
  return address?.code === 'loopback' ? [address] : [...(address ? [address] : []), nobody];
}

/** `::1` as `clientKey` writes it (auth/client-address.ts). */
const isThisMachine = (source: string): boolean => source.startsWith('127.') || source === '0:0:0:0::/64';

/**
 * Returns a function that records, at most once a minute, that a request came from another machine. To be called where pages are served, never on the
 * path of governed calls. `source`: the client's address as the rate limits write it. Errors of the store are ignored: the next visit is recorded
 * instead.
 */
export function makeVisitNote(): (broker: Pick<Broker, 'store' | 'clock'>, source: string) => void {
  let notedAt: Instant = 0;
  return ({ store, clock }, source) => {
    if (isThisMachine(source)) return;
    const now = clock();
    if (now - notedAt < WRITE_INTERVAL_MS) return;
    notedAt = now;
    putMeta(store.db, LAST_VISIT, `${now}`).catch(() => {
      notedAt = 0;
    });
  };
}
