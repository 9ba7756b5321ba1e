/** Effective permissions: the same facts and the same `decide` as a call, for every scope that an agent holds. */
import { sha256Base64url } from '../crypto/canonical.ts';
import type { Instant } from '../decision/facts.ts';
import { effectivePermissions, nextChange, type PlatformPermissions } from '../decision/permissions.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import type { FactsRow } from '../store/facts.ts';
import { loadFacts } from './facts.ts';
import type { Governor } from './governor.ts';

export type Permissions = {
  platforms: readonly PlatformPermissions[];
  /** Hosts that the agent's calls can reach. */
  hosts: readonly string[];
  /** By platform id: where an MCP server is, and its name. */
  servers: ReadonlyMap<string, { serverHost: string; serverName: string }>;
  /** Hash of everything that the agent can act on. */
  version: string;
};

export type PermissionsReader = (governor: Governor, who: AgentPrincipal) => Promise<Permissions>;

/** A few hundred bytes each. */
const KEPT = 20_000;

/**
 * Reads an agent's permissions. The last answer is kept by the very rows that it was made of, so nothing that changes in
 * the store is missed; and until the first moment at which time itself changes it.
 */
export function permissionsReader(): PermissionsReader {
  const kept = new Map<string, { rows: string; until: Instant | null; permissions: Permissions }>();
  return async (governor, who) => {
    const now = governor.broker.clock();
    const rows = fingerprint(who.rows);
    const found = kept.get(who.agent.id);
    if (found?.rows === rows && (found.until === null || now < found.until)) return found.permissions;
    const permissions = await readPermissions(governor, who, now);
    // Half-open breakers and children depend on more than these rows: read again each time.
    const steady = who.agent.parent_id === null && !hasBreaker(who.rows);
    kept.delete(who.agent.id);
    if (steady) kept.set(who.agent.id, { rows, until: nextChange(permissions.platforms), permissions });
    if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
    return permissions;
  };
}

/** Credentials are left out: replacing one changes nothing that an agent can see. */
function fingerprint(rows: readonly FactsRow[]): string {
  let text = '';
  for (const row of rows)
    for (const name in row) if (name !== 'connection_credential') text += `${row[name as keyof FactsRow]}\u0001`;
  return text;
}

function hasBreaker(rows: readonly FactsRow[]): boolean {
  return rows.some(
    (row) => row.auth_open_until !== null || row.api_open_until !== null || row.upstream_open_until !== null,
  );
}

async function readPermissions(governor: Governor, who: AgentPrincipal, now: Instant): Promise<Permissions> {
  const byPlatform = new Map<string, FactsRow[]>();
  for (const row of who.rows) {
    if (row.platform_id === null) continue;
    byPlatform.set(row.platform_id, [...(byPlatform.get(row.platform_id) ?? []), row]);
  }
  const hosts = new Set<string>();
  const servers = new Map<string, { serverHost: string; serverName: string }>();
  const facts = [];
  for (const [platformId, rows] of byPlatform) {
    const loaded = await loadFacts(governor.broker, governor.compiled, rows, platformId, now);
    const { manifest } = loaded.platform!;
    const host = new URL(manifest.base_url).host;
    hosts.add(host);
    if (manifest.kind === 'mcp') servers.set(platformId, { serverHost: host, serverName: manifest.name ?? platformId });
    const labels = [...loaded.connections.values()].map(({ id, label }) => [id, label] as const);
    facts.push({ facts: loaded.facts, connectionLabels: new Map(labels) });
  }
  const platforms = effectivePermissions(facts, now);
  const acted = {
    agent: [who.agent.agent_id, who.agent.name, who.agent.status],
    platforms,
    hosts: [...hosts].sort(),
    servers: [...servers],
  };
  return { platforms, hosts: [...hosts].sort(), servers, version: sha256Base64url(JSON.stringify(acted)) };
}
