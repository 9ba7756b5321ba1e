/** Reads access requests for owners. */
import type { Broker, Uses } from '../../broker.ts';
import type { Compiled } from '../../facts/compiled.ts';
import { findAccessRequest, listAccessRequests, type ShownRequest } from '../../store/access-requests.ts';
import { listGrants } from '../../store/agents.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { ChangeRefused } from '../refused.ts';
import { findGrantContext } from './grant-terms.ts';

export const noRequest = () => new ChangeRefused('not_found', 'The organisation has no such access request.');

/** Returns a page of requests, newest first. */
export const listRequests = (
  { store: { db } }: Pick<Broker, 'store'>,
  organisationId: string,
  page: Parameters<typeof listAccessRequests>[2],
): Promise<ShownRequest[]> => listAccessRequests(db, organisationId, page);

export type RequestWithChoices = {
  request: ShownRequest;
  /** The platform's scopes; empty when the platform or the agent was removed. */
  platformScopes: string[];
  connections: readonly ConnectionTable[];
  /** The agent's current grants on the platform. */
  grants: GrantTable[];
};

/** Returns one request with what can be granted, for the deciding owner. Throws ChangeRefused. */
export async function readRequest(
  services: Uses<'store'> & { compiled: Compiled },
  organisationId: string,
  id: string,
): Promise<RequestWithChoices> {
  const { db } = services.broker.store;
  const request = await findAccessRequest(db, organisationId, id);
  if (!request) throw noRequest();
  const { agent_id: agentId, platform_id: platformId } = request;
  const context = await findGrantContext(services, organisationId, agentId, platformId);
  const { manifest, connections } = typeof context === 'string' ? { connections: [] } : context;
  const grants = await listGrants(db, organisationId, agentId);
  return {
    request,
    platformScopes: Object.keys(manifest?.scopes ?? {}),
    connections,
    grants: grants.filter((grant) => grant.platform_id === platformId),
  };
}
