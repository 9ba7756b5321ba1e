/** What the consent page offers an owner to grant to an MCP client: presets, with their descriptions. */

import type { Broker } from '../../broker.ts';
import { loadManifests } from '../../facts/stored-manifests.ts';
import { LOOPBACK_HOSTS } from '../../oauth-server/client-metadata.ts';
import { DEFAULT_POLICY } from '../../policy/default-policy.ts';
import { listAgents, listGrants } from '../../store/agents.ts';
import { listConnections } from '../../store/connections.ts';
import { findLastAuthorised } from '../../store/mcp-authorisations.ts';
import { listPolicies } from '../../store/policies.ts';
import { readScopes } from '../../store/stored-terms.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { splitScopes } from '../agents/new-agent.ts';
import { type AskedConsent, isOffered } from '../mcp-consent.ts';

type Asked = Pick<AskedConsent, 'client_id' | 'client_name'> & { redirectUri: string };

/** Reads what this owner can offer to a client. */
export async function consentOffer(
  { store: { db } }: Pick<Broker, 'store'>,
  { id: ownerId, organisation_id }: Pick<OwnerTable, 'id' | 'organisation_id'>,
  { client_id: clientId, client_name: clientName, redirectUri }: Asked,
) {
  const [last, agents, grants, manifests, connections, policies] = await Promise.all([
    isOneClient(clientId, redirectUri)
      ? findLastAuthorised(db, { organisationId: organisation_id, ownerId, clientId })
      : undefined,
    listAgents(db, organisation_id),
    listGrants(db, organisation_id),
    loadManifests(db, organisation_id),
    listConnections(db, organisation_id),
    listPolicies(db, organisation_id),
  ]);
  const live = agents.filter(({ status }) => status !== 'revoked');
  const offered = isOffered(manifests);
  const named = ({ agent_id, name }: AgentTable) => ({ agent_id, name });
  const connected = new Set(connections.filter(({ credential }) => credential !== null).map((one) => one.platform_id));
  return {
    last: last ?? null,
    name: freeName(clientName, new Set(live.map(({ name }) => name))),
    known: live
      .filter(({ agent_type }) => agent_type === 'mcp_client')
      .sort((a, b) => Number(b.name.startsWith(clientName)) - Number(a.name.startsWith(clientName)))
      .map(named),
    platforms: [...manifests].map(([platform, { name, scopes }]) => ({
      platform,
      name: name ?? platform,
      connected: connected.has(platform),
      reads: Object.keys(scopes).filter((scope) => isRead(scope, scopes[scope] ?? [])),
      all: Object.keys(scopes),
    })),
    policies: policies
      .map(({ id, name }) => ({ id, name }))
      .sort((a, b) => Number(b.name === DEFAULT_POLICY) - Number(a.name === DEFAULT_POLICY)),
    alike: live
      .filter(({ agent_type }) => agent_type !== 'child')
      .map((agent) => ({ agent, own: grants.filter((grant) => grant.agent_id === agent.id) }))
      // Only agents whose grants have no constraints, end or approvals: copying the scopes alone would otherwise grant more.
      .filter(({ own }) => own.length > 0 && own.every(isScopesAlone))
      .map(({ agent, own }) => ({
        ...named(agent),
        grants: splitScopes(own.map(scopesOf), offered).in,
      }))
      .filter((one) => one.grants.length > 0),
  };
}

/**
 * Whether only one client gets codes for this client id: an installation that registered for itself, or a site. All installations of a program with a
 * metadata document have the same id, and any local program can listen on loopback or for a scheme.
 */
function isOneClient(clientId: string, redirectUri: string): boolean {
  if (!clientId.startsWith('https:')) return true;
  const url = URL.parse(redirectUri);
  return url?.protocol === 'https:' && !LOOPBACK_HOSTS.includes(url.hostname);
}

const scopesOf = (grant: GrantTable) => ({
  platformId: grant.platform_id,
  scopes: readScopes(grant.scopes, grant.id),
});

const isScopesAlone = ({ constraints, require_approval, expires_at, connection_id }: GrantTable): boolean =>
  constraints === '{}' && require_approval === 0 && expires_at === null && connection_id === null;

/** The same criterion as in the default policy: sent as GET, or called a read by the author of the manifest. */
function isRead(scope: string, operations: readonly string[]): boolean {
  if (/[.:]read$/.test(scope)) return true;
  return operations.length > 0 && operations.every((operation) => /^(GET|HEAD|query) /.test(operation));
}

/** Appends a number to a name that is taken, so that no two agents can be confused. */
function freeName(wanted: string, taken: ReadonlySet<string>): string {
  const base = wanted.trim() || 'MCP client';
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base} ${number}`;
    if (!taken.has(name)) return name;
  }
}
