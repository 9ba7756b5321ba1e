/** Effective permissions: uses the same facts and the same `decide` as a call, for every scope that an agent holds. */

import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import { sha256Base64url } from '../crypto/canonical.ts';
import { isEntitled } from '../entitlement.ts';
import { hasSign } from '../platforms/error-sign.ts';
import { baseUrlsOf, type Manifest } from '../platforms/manifest.ts';
import type { Facts, Instant } from '../policy/facts.ts';
import { effectivePermissions, nextChange, type PlatformPermissions } from '../policy/permissions.ts';
import { pacer } from '../runtime/pace.ts';
import { present } from '../runtime/present.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import { listUsableTools, type ToolPlace } from '../store/mcp-tools.ts';
import { type FactsLoader, isSteady } from './facts.ts';

export type Permissions = {
  platforms: readonly PlatformPermissions[];
  /** Hosts to which the agent's calls are sent; undefined when the entitlement `egress` is switched off for the organisation. */
  hosts: readonly string[] | undefined;
  /** The address of each platform, by platform id. */
  addresses: ReadonlyMap<string, PlatformAddress>;
  /** Hash of everything that the agent can act on; changes whenever the permissions do. */
  version: string;
};

/**
 * The base URL of a platform, or the host and name of an MCP server. `otherBaseUrls`: those of single operations (`base_urls` of its manifest). `errorBody`: the form of the platform's errors (`error_body` of its manifest), for
 * clients that refuse a call themselves. `errorStatus`: the status with which the platform sends errors, if it is 200.
 */
export type PlatformAddress =
  | { baseUrl: string; otherBaseUrls?: string[]; errorBody?: Manifest['error_body']; errorStatus?: 200 }
  | { serverHost: string; serverName: string };

export type PermissionsReader = (who: AgentPrincipal) => Promise<Permissions>;

/**
 * Returns a reader of an agent's permissions. The last result is cached by the identity of the rows, which are the same array only as long as nothing in them
 * has changed in the store, and for the times at which they are the same: from when they were computed, because a clock that was ahead may be set back, until
 * the first change by themselves. Tools of MCP servers are not in these rows: they are loaded each time, for agents with such a server.
 */
export function permissionsReader(
  { clock, store, config }: Pick<Broker, 'clock' | 'store' | 'config'>,
  loadFacts: FactsLoader,
): PermissionsReader {
  const kept = new WeakMap<readonly FactsRow[], { from: Instant; until: Instant | null; read: ReadPermissions }>();
  const withTools = async ({ servers, ...permissions }: ReadPermissions): Promise<Permissions> => {
    if (servers.length === 0) return permissions;
    const tools = await listUsableTools(store.db, servers);
    return { ...permissions, version: sha256Base64url(JSON.stringify([permissions.version, tools])) };
  };
  return async (who) => {
    const now = clock();
    const found = kept.get(who.rows);
    if (found && now >= found.from && (found.until === null || now < found.until)) return await withTools(found.read);
    const tellsHosts = isEntitled({ config }, who.agent.organisation_id, 'egress');
    const read = await readPermissions(loadFacts, who, tellsHosts, now);
    if (isSteady(who.rows)) kept.set(who.rows, { from: now, until: nextChange(read.platforms), read });
    return await withTools(read);
  };
}

/** `servers`: the MCP servers among the platforms, whose tools are not included in `version` yet. */
type ReadPermissions = Permissions & { servers: readonly ToolPlace[] };

async function readPermissions(
  loadFacts: FactsLoader,
  who: AgentPrincipal,
  tellsHosts: boolean,
  now: Instant,
): Promise<ReadPermissions> {
  const byPlatform = Map.groupBy(who.rows, (row) => row.platform_id);
  byPlatform.delete(null);
  // The order of the rows is arbitrary, and the hash must not depend on it.
  const ids = ([...byPlatform.keys()] as string[]).sort();
  const hosts = new Set<string>();
  const addresses = new Map<string, PlatformAddress>();
  const servers: ToolPlace[] = [];
  const facts: Facts[] = [];
  const rest = pacer();
  for (const platformId of ids) {
    // Compiling a manifest that is not cached takes up to 20 ms.
    await rest();
    const rows = byPlatform.get(platformId) ?? [];
    const loaded = await loadFacts(rows, now);
    const { manifest } = present(loaded.platform, 'platform');
    const host = new URL(manifest.base_url).host;
    for (const url of baseUrlsOf(manifest)) hosts.add(new URL(url).host);
    const isServer = manifest.kind === 'mcp';
    if (isServer) servers.push({ organisationId: who.agent.organisation_id, platformId, server: manifest.base_url });
    addresses.set(
      platformId,
      isServer ? { serverHost: host, serverName: manifest.name ?? platformId } : addressOf(manifest),
    );
    facts.push(loaded.facts);
  }
  const platforms = effectivePermissions(facts, now);
  const listedHosts = tellsHosts ? [...hosts].sort() : undefined;
  const acted = {
    agent: [who.agent.status, ...conditionedOn(who.agent)],
    platforms,
    hosts: listedHosts,
    addresses: [...addresses],
    // Included because rules can decide single calls in ways that the permissions do not show.
    rules: [facts[0]?.policy?.id, facts[0]?.policy?.version, facts[0]?.guardrails.version],
    manifests: ids.map((id) => byPlatform.get(id)?.[0]?.platform_version),
  };
  const version = sha256Base64url(JSON.stringify(acted));
  return { platforms, hosts: listedHosts, addresses, servers, version };
}

/** What conditions read of an agent, and of a child's parent, whom its rules have to let, too. */
const conditionedOn = (agent: FactsRow) => [
  agent.agent_id,
  agent.name,
  agent.owner_id,
  agent.labels,
  agent.parent_name,
  agent.parent_owner_id,
  agent.parent_labels,
];

const addressOf = ({
  base_url: baseUrl,
  base_urls: others = {},
  error_body: errorBody,
  failed_if,
}: Manifest): PlatformAddress => ({
  baseUrl,
  ...(Object.keys(others).length > 0 && { otherBaseUrls: [...new Set(Object.values(others))].sort() }),
  ...(errorBody !== undefined && { errorBody }),
  ...(errorBody !== undefined && hasSign(failed_if, errorBody) && { errorStatus: 200 }),
});
