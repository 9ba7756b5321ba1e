/** Authorised MCP clients: who authorised them, as which agents, and how to revoke them. */
import { type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { listGrants } from '../store/agents.ts';
import { endMcpAuthorisation, type ListedAuthorisation, listMcpAuthorisations } from '../store/mcp-authorisations.ts';
import type { Db } from '../store/store.ts';
import { readScopes } from '../store/stored-terms.ts';
import type { GrantTable } from '../store/tables/rules.ts';
import { mergeScopes } from './agents/new-agent.ts';
import { ChangeRefused } from './refused.ts';

/** The current state, with the current grants of its agent. */
export type ReadMcpClient = ReturnType<typeof readClient>;

function readClient(one: ListedAuthorisation, grants: readonly GrantTable[], now: Instant) {
  const isOver = one.agent_status === 'revoked' || one.agent_status === 'deleted';
  // Revoking an agent ends its authorisations at the same moment, so equal times mean that the agent's end was the cause; authorisations that ended
  // earlier keep their own cause.
  const withAgent = isOver && (one.ended_at === null || one.ended_at === one.agent_status_since);
  const own = grants.filter(({ agent_id }) => agent_id === one.agent_id);
  return {
    ...one,
    status:
      withAgent || one.ended_at !== null
        ? ('ended' as const)
        : one.expires_at <= now
          ? ('expired' as const)
          : ('live' as const),
    ended_at: withAgent ? one.agent_status_since : one.ended_at,
    ended_because: withAgent ? ('agent' as const) : one.ended_because,
    grants: mergeScopes(
      own.map(({ id, platform_id, scopes }) => ({ platformId: platform_id, scopes: readScopes(scopes, id) })),
    ),
  };
}

/** Lists authorisations, newest first; ended ones for 90 days. */
export async function listMcpClients(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
): Promise<ReadMcpClient[]> {
  const found = await listMcpAuthorisations(db, organisationId);
  const grants = await listGrants(db, organisationId);
  return found.map((one) => readClient(one, grants, clock()));
}

/**
 * Revokes an authorisation: its tokens are refused from the next call, on every replica; its agent and the agent's grants stay. Returns the updated
 * authorisation.
 *
 * @throws ChangeRefused, or AuditUnavailable: then it stays in force
 */
export async function endMcpClient(services: Changing, by: ChangingOwner, id: string): Promise<ReadMcpClient> {
  const { store, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const find = async (db: Db) => (await listMcpAuthorisations(db, organisationId, { id }))[0];
  const known = await find(store.db);
  if (!known) throw new ChangeRefused('not_found', 'The organisation has no such authorisation.');
  const agent = { id: known.agent_id, agent_id: known.agent_public_id };
  const change = { reason: 'mcp_client_revoked', detail: known.client_name, agent };
  const ended = await recordChange(services, by, change, async (tx, note) => {
    if (!(await endMcpAuthorisation(tx, id, 'owner', clock())))
      throw new ChangeRefused('conflict', 'This authorisation has ended already.');
    note({ authorisation: id, client: known.client_id });
    return present(await find(tx), 'authorisation');
  });
  return readClient(ended, await listGrants(store.db, organisationId, known.agent_id), clock());
}
