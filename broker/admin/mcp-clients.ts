/** Authorised MCP clients: who authorised them, as which agents, and how to revoke them. */
import { type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { listGrants } from '../store/agents.ts';
import {
  type AuthorisationFilter,
  type AuthorisationPlace,
  countMcpAuthorisations,
  endMcpAuthorisation,
  type ListedAuthorisation,
  listMcpAuthorisations,
} from '../store/mcp-authorisations.ts';
import type { Db } from '../store/store.ts';
import { readScopes } from '../store/stored-terms.ts';
import type { GrantTable } from '../store/tables/rules.ts';
import { mergeScopes } from './agents/new-agent.ts';
import { ChangeRefused } from './refused.ts';

/** The current state, with the current grants of its agent. */
export type ReadMcpClient = ReturnType<typeof readClient>;

function readClient(one: ListedAuthorisation, own: readonly GrantTable[], now: Instant) {
  const isOver = one.agent_status === 'revoked' || one.agent_status === 'deleted';
  // Revoking an agent ends its authorisations at the same moment, so equal times mean that the agent's end was the cause; authorisations that ended
  // earlier keep their own cause.
  const withAgent = isOver && (one.ended_at === null || one.ended_at === one.agent_status_since);
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

/** Agents whose grants are read in one statement. */
const AGENTS_AT_ONCE = 500;

/**
 * Lists authorisations, newest first; ended ones for 90 days. `end`: the place after which the next page begins; undefined: this is the last page, as it
 * always is without `limit`.
 */
export async function listMcpClients(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  { limit, ...sought }: Omit<AuthorisationFilter, 'id'> = {},
): Promise<{ clients: ReadMcpClient[]; end: AuthorisationPlace | undefined }> {
  const now = clock();
  const most = limit === undefined ? undefined : limit + 1;
  const found = await listMcpAuthorisations(db, organisationId, { ...sought, limit: most }, now);
  const page = found.slice(0, limit);
  const agents = [...new Set(page.map(({ agent_id }) => agent_id))];
  const grants: GrantTable[] = [];
  for (let from = 0; from < agents.length; from += AGENTS_AT_ONCE)
    grants.push(...(await listGrants(db, organisationId, agents.slice(from, from + AGENTS_AT_ONCE))));
  const ofAgent = Map.groupBy(grants, ({ agent_id }) => agent_id);
  return {
    clients: page.map((one) => readClient(one, ofAgent.get(one.agent_id) ?? [], now)),
    end: found.length > page.length ? page.at(-1) : undefined,
  };
}

/** Counts authorisations by whether they are live. `agent`: only those of the one with this uuid or agent id. */
export async function countMcpClients(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  agent: string | undefined,
): Promise<{ live: number; over: number }> {
  const [live, over] = await Promise.all(
    [true, false].map((isLive) => countMcpAuthorisations(db, organisationId, { agent, isLive }, clock())),
  );
  return { live: present(live, 'count'), over: present(over, 'count') };
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
  const find = async (db: Db) => (await listMcpAuthorisations(db, organisationId, { id }, clock()))[0];
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
