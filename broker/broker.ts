/** Shared capabilities, each created once at the start. */

import type { Outbound } from './egress/dispatcher.ts';
import type { Config } from './environment/config.ts';
import type { FleetRun } from './fleet-run.ts';
import type { Keys } from './keys.ts';
import type { Log } from './log/log.ts';
import type { Outage } from './outage.ts';
import type { Instant } from './policy/facts.ts';
import type { RemoteFolder } from './runtime/remote-folder.ts';
import type { WindowCounts } from './runtime/window-counts.ts';
import type { Store } from './store/store.ts';
import type { StoreClock } from './store-clock.ts';
import type { Tracing } from './telemetry/call-watch.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { Vault } from './vault.ts';

export type Broker = {
  config: Config;
  /** Public base URL, without a trailing slash. */
  baseUrl: string;
  /** Base URL of `/git` and `/proxy`, without a trailing slash: the public one, unless they have a host of their own. */
  proxyUrl: string;
  /** `did:web:<host>`, a port written as `%3A` (did:web, section 3.1). */
  did: string;
  /** Id of this process, which tells it apart from other replicas on the same store. */
  instanceId: string;
  /** The fleet run: shared by all processes that run on the store at the same time. */
  fleetRun: FleetRun;
  /** The store's time, in milliseconds since the epoch. */
  clock: () => Instant;
  storeClock: StoreClock;
  /** When the store was last restored from a backup after which calls may have been made; undefined: it never was. */
  keysRestoredAt: Instant | undefined;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
  store: Store;
  /** Counters of the rate limits. */
  rateCounts: WindowCounts;
  /** Whether the store is currently unreachable. */
  storeOutage: Outage;
  vault: Vault;
  keys: Keys;
  outbound: Outbound;
  /** The folder that audit sinks of kind `file` write to (AUDIT_FOLDER); undefined: no such sinks are allowed. */
  auditFolder: RemoteFolder | undefined;
  /** Addresses (`host:port`) of the sandbox platforms that run beside this process. */
  testPlatforms: readonly string[];
  /** HTTP client for URLs that strangers supply: public internet only, whatever the operator allows for platforms. */
  publicOutbound: Outbound;
  /** HTTP client for the owners' identity provider, if there is one. */
  providerOutbound?: Outbound | undefined;
};

/** The parameter type of a function that uses only these capabilities of the broker. */
export type Uses<Names extends keyof Broker> = { broker: Pick<Broker, Names> };

/** Returns the base URL of `/git` and `/proxy`. `proxyHost`: their own host, if any; without a port it takes the port of the base URL. */
export function proxyUrlOf(baseUrl: string, proxyHost: string | undefined): string {
  const url = new URL(baseUrl);
  if (proxyHost !== undefined) url.host = proxyHost;
  return url.origin;
}

/**
 * Returns the did:web of a base URL's host. For an IPv6 address the result has the form of a DID only: did:web resolves names alone (section 3.1).
 */
export function didOf(baseUrl: string): string {
  return `did:web:${encodeURIComponent(new URL(baseUrl).host)}`;
}

/** Returns the DID of an agent: `did:web:<host>:agents:<agent_id>`. */
export function didOfAgent({ did }: Pick<Broker, 'did'>, agentId: string): string {
  return `${did}:agents:${agentId}`;
}

/** Returns the workload identity id: `spiffe://<host>/orgs/<organisation uuid>/agents/<agent_id>`. */
export function workloadIdOf(baseUrl: string, organisationId: string, agentId: string): string {
  return `spiffe://${new URL(baseUrl).host}/orgs/${organisationId}/agents/${agentId}`;
}
