/** What the consent page offers an owner to grant to an MCP client: presets, with their descriptions. */

import type { Broker } from '../../broker.ts';
import { loadManifests } from '../../facts/stored-manifests.ts';
import { LOOPBACK_HOSTS } from '../../oauth-server/client-metadata.ts';
import { DEFAULT_POLICY } from '../../policy/default-policy.ts';
import { listGrants } from '../../store/agents.ts';
import { listConnections } from '../../store/connections.ts';
import { findLastAuthorised } from '../../store/mcp-authorisations.ts';
import { listAgentsOfScopesAlone, listClientAgents, listNamesWith } from '../../store/offered-agents.ts';
import { listPolicies } from '../../store/policies.ts';
import { readScopes } from '../../store/stored-terms.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { splitScopes } from '../agents/new-agent.ts';
import { type AskedConsent, isOffered } from '../mcp-consent.ts';

type Asked = Pick<AskedConsent, 'client_id' | 'client_name'> & { redirectUri: string };

/** How many agents the page lists: as ones that the client may act as, and as ones whose scopes it may get. */
const MAX_KNOWN = 200;
const MAX_ALIKE = 100;

/**
 * Reads what this owner can offer to a client. `alike`: agents whose grants have no constraints, end, approvals or connection; to copy the scopes of others
 * alone would grant more than they have.
 */
export async function consentOffer(
  { store: { db } }: Pick<Broker, 'store'>,
  { id: ownerId, organisation_id }: Pick<OwnerTable, 'id' | 'organisation_id'>,
  { client_id: clientId, client_name: clientName, redirectUri }: Asked,
) {
  const base = clientName.trim() || 'MCP client';
  const last = isOneClient(clientId, redirectUri)
    ? await findLastAuthorised(db, { organisationId: organisation_id, ownerId, clientId })
    : undefined;
  const [taken, known, alike, manifests, connections, policies] = await Promise.all([
    listNamesWith(db, organisation_id, base),
    listClientAgents(db, organisation_id, { first: last, beginning: clientName, limit: MAX_KNOWN }),
    listAgentsOfScopesAlone(db, organisation_id, MAX_ALIKE),
    loadManifests(db, organisation_id),
    listConnections(db, organisation_id),
    listPolicies(db, organisation_id),
  ]);
  const ids = alike.map(({ id }) => id);
  const grants = ids.length === 0 ? [] : await listGrants(db, organisation_id, ids);
  const offered = isOffered(manifests);
  const connected = new Set(connections.filter(({ credential }) => credential !== null).map((one) => one.platform_id));
  return {
    last: last ?? null,
    name: freeName(base, new Set(taken)),
    known,
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
    alike: alike
      .map(({ id, agent_id, name }) => ({
        agent_id,
        name,
        grants: splitScopes(grants.filter((grant) => grant.agent_id === id).map(scopesOf), offered).in,
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

/** The same criterion as in the default policy: sent as GET, or called a read by the author of the manifest. */
function isRead(scope: string, operations: readonly string[]): boolean {
  if (/[.:]read$/.test(scope)) return true;
  return operations.length > 0 && operations.every((operation) => /^(GET|HEAD|query) /.test(operation));
}

/** Appends a number to a name that is taken, so that no two agents can be confused. */
function freeName(base: string, taken: ReadonlySet<string>): string {
  for (let number = 1; ; number++) {
    const name = number === 1 ? base : `${base} ${number}`;
    if (!taken.has(name)) return name;
  }
}
