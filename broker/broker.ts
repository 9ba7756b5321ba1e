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
  /** This process, among the replicas on one store. */
  instanceId: string;
  /** The run of all processes on the store. */
  fleetRun: FleetRun;
  /** The store's time. */
  clock: () => Instant;
  storeClock: StoreClock;
  /** When the store was restored last from a backup after which calls may have been made; undefined: never. */
  keysRestoredAt: Instant | undefined;
  log: Log;
  metrics: Metrics;
  tracing: Tracing;
  store: Store;
  /** Counts of rate limits. */
  rateCounts: WindowCounts;
  /** Whether the store answers. */
  storeOutage: Outage;
  vault: Vault;
  keys: Keys;
  outbound: Outbound;
  /** Where audit sinks of kind `file` write (AUDIT_FOLDER); undefined: nowhere. */
  auditFolder: RemoteFolder | undefined;
  /** Addresses (`host:port`) of our own test platforms, which run beside this process: the sandbox. */
  testPlatforms: readonly string[];
  /** HTTP client for URLs from strangers: public internet only, whatever the operator allows for platforms. */
  publicOutbound: Outbound;
  /** HTTP client for the owners' identity provider, if there is one. */
  providerOutbound?: Outbound | undefined;
};

/** Services with these capabilities of the broker. */
export type Uses<Names extends keyof Broker> = { broker: Pick<Broker, Names> };

/** The base URL of `/git` and `/proxy`; `proxyHost`: their own host. Without a port in it they have that of the base URL. */
export function proxyUrlOf(baseUrl: string, proxyHost: string | undefined): string {
  const url = new URL(baseUrl);
  if (proxyHost !== undefined) url.host = proxyHost;
  return url.origin;
}

/** The did:web of a base URL's host. That of an IPv6 address is a DID by its form only: did:web resolves names alone (its section 3.1). */
export function didOf(baseUrl: string): string {
  return `did:web:${encodeURIComponent(new URL(baseUrl).host)}`;
}

/** The DID of an agent: `did:web:<host>:agents:<agent_id>`. */
export function didOfAgent({ did }: Pick<Broker, 'did'>, agentId: string): string {
  return `${did}:agents:${agentId}`;
}

/** The workload identity id, `spiffe://<host>/orgs/<organisation uuid>/agents/<agent_id>`. */
export function workloadIdOf(baseUrl: string, organisationId: string, agentId: string): string {
  return `spiffe://${new URL(baseUrl).host}/orgs/${organisationId}/agents/${agentId}`;
}
