import type { Broker } from '../../broker.ts';
import { listGrants } from '../../store/agents.ts';
import { listConnections } from '../../store/connections.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { loadAgent } from '../agents/find-agent.ts';

/** Returns all grants of an agent, by platform, with the organisation's connections, which the grants name. Throws ChangeRefused. */
export async function listGrantsOf(
  { store: { db } }: Pick<Broker, 'store'>,
  organisationId: string,
  agentId: string,
): Promise<{ grants: GrantTable[]; connections: readonly ConnectionTable[] }> {
  const agent = await loadAgent(db, organisationId, agentId);
  const connections = await listConnections(db, organisationId);
  return { grants: await listGrants(db, organisationId, agent.id), connections };
}
