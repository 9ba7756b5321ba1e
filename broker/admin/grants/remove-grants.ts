/** Removes an agent's grants on a platform: in force from the next decision on every replica. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { deleteGrant, listGrants } from '../../store/agents.ts';
import { listConnections } from '../../store/connections.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { loadAgent } from '../agents/find-agent.ts';
import { ChangeRefused } from '../refused.ts';
import { describeGrant } from './grant-terms.ts';

/** `connection`: the label of the connection whose grant is meant; absent: all grants on the platform. */
export type RemoveGrants = { agentId: string; platformId: string; connection?: string };

/**
 * Removes the grants, recorded as one event. Returns the removed grants.
 *
 * @throws ChangeRefused, also when there are none; or AuditUnavailable: then nothing is changed
 */
export async function removeGrants(
  services: Changing,
  by: ChangingOwner,
  { agentId, platformId, connection: label }: RemoveGrants,
): Promise<{ removed: GrantTable[]; connections: readonly ConnectionTable[] }> {
  const { db } = services.broker.store;
  const { organisation_id: organisationId } = by.owner;
  const agent = await loadAgent(db, organisationId, agentId);
  const connections = await listConnections(db, organisationId);
  const named = connections.find((one) => one.label === label && one.platform_id === platformId);
  if (label !== undefined && !named)
    throw new ChangeRefused('invalid_request', 'connection: the platform has no connection of this name.');
  const isMeant = (grant: GrantTable): boolean =>
    grant.platform_id === platformId &&
    (!named || grant.connection_id === named.id || (grant.connection_id === null && named.is_default === 1));
  const change = { reason: 'grant_removed', agent, platform: platformId };
  const removed = await recordInTurn(services, by, change, async (tx, note) => {
    const grants = (await listGrants(tx, organisationId, agent.id)).filter(isMeant);
    if (grants.length === 0) throw new ChangeRefused('not_found', 'The agent has no such grant.');
    for (const { id } of grants) await deleteGrant(tx, organisationId, id, services.broker.clock());
    note({ before: grants.map(describeGrant), after: null });
    return grants;
  });
  return { removed, connections };
}
