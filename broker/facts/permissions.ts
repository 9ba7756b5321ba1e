/** Effective permissions: the same facts and the same `decide` as a call, for every scope that an agent holds. */

import type { AgentPrincipal } from '../auth/principal.ts';
import { sha256Base64url } from '../crypto/canonical.ts';
import type { Facts, Instant } from '../policy/facts.ts';
import { effectivePermissions, nextChange, type PlatformPermissions } from '../policy/permissions.ts';
import { present } from '../policy/present.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { FactsLoader } from './facts.ts';
import { isSteady } from './facts.ts';

export type Permissions = {
  platforms: readonly PlatformPermissions[];
  /** Hosts that the agent's calls can reach. */
  hosts: readonly string[];
  /** By platform id: where it is. */
  addresses: ReadonlyMap<string, PlatformAddress>;
  /** Hash of everything that the agent can act on. */
  version: string;
};

/** What stands before every endpoint, or the host of an MCP server and its name. */
export type PlatformAddress = { baseUrl: string } | { serverHost: string; serverName: string };

export type PermissionsReader = (who: AgentPrincipal) => Promise<Permissions>;

/**
 * Reads an agent's permissions. The last answer is kept by the very rows that it was made of, which are the same ones only
 * as long as nothing has changed in the store; and until the first moment at which time itself changes it.
 */
export function permissionsReader(clock: () => Instant, loadFacts: FactsLoader): PermissionsReader {
  const kept = new WeakMap<readonly FactsRow[], { until: Instant | null; permissions: Permissions }>();
  return async (who) => {
    const now = clock();
    const found = kept.get(who.rows);
    if (found && (found.until === null || now < found.until)) return found.permissions;
    const permissions = await readPermissions(loadFacts, who, now);
    if (isSteady(who.rows)) kept.set(who.rows, { until: nextChange(permissions.platforms), permissions });
    return permissions;
  };
}

async function readPermissions(loadFacts: FactsLoader, who: AgentPrincipal, now: Instant): Promise<Permissions> {
  const byPlatform = Map.groupBy(who.rows, (row) => row.platform_id);
  byPlatform.delete(null);
  // The rows come in no order of their own, and what is hashed must not depend on it.
  const ids = ([...byPlatform.keys()] as string[]).sort();
  const hosts = new Set<string>();
  const addresses = new Map<string, PlatformAddress>();
  const facts: Facts[] = [];
  for (const platformId of ids) {
    const rows = byPlatform.get(platformId) ?? [];
    const loaded = await loadFacts(rows, platformId, now);
    const { manifest } = present(loaded.platform, 'platform');
    const host = new URL(manifest.base_url).host;
    hosts.add(host);
    const isServer = manifest.kind === 'mcp';
    addresses.set(
      platformId,
      isServer ? { serverHost: host, serverName: manifest.name ?? platformId } : { baseUrl: manifest.base_url },
    );
    facts.push(loaded.facts);
  }
  const platforms = effectivePermissions(facts, now);
  const acted = {
    agent: [who.agent.agent_id, who.agent.name, who.agent.status],
    platforms,
    hosts: [...hosts].sort(),
    addresses: [...addresses],
    // What these say of a single call is more than what is answered here.
    rules: [facts[0]?.policy?.id, facts[0]?.policy?.version, facts[0]?.guardrails.version],
    manifests: ids.map((id) => byPlatform.get(id)?.[0]?.platform_version),
  };
  return { platforms, hosts: [...hosts].sort(), addresses, version: sha256Base64url(JSON.stringify(acted)) };
}
