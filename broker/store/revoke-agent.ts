/** Revokes and expires agents: the only code that writes these statuses, with all side effects. */
import type { AgentStatus, HaltCause } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { type AgentRef, moveAgent, moveAgents } from './agents.ts';
import { expireChild, freeChildSlot, freeChildSlots, listLivingChildren } from './children.ts';
import { endOneTimeTokens } from './governance.ts';
import { endMcpAuthorisationsOf } from './mcp-authorisations.ts';
import { destroyUncollectedKey } from './registrations.ts';
import { endSecretAuthorizationsOf } from './secret-authorizations.ts';
import { endStandingOfAgents } from './standing-approvals.ts';
import { endStaticKeysOf } from './static-keys.ts';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';

/** `expired`: a child whose lifetime is over; nobody revoked it. */
export type Ending = 'expired' | { from: readonly AgentStatus[]; cause: HaltCause; detail: string | null };

/** A held call, or an access request. */
export type EndedRequest = { organisation_id: string; id: string };

type Revocable = { organisation_id: string; id: string; parent_id: string | null; expires_at: number | null };

/**
 * Revokes an agent in the transaction of `db`, with what belongs to it: its child slot, an unclaimed private key, its bootstrap tokens,
 * authorisations to send secrets for it, its static keys and standing approvals, its MCP clients' authorisations, and the held calls and
 * access requests of the agent and its children. Returns the requests that ended, to be announced; undefined: the agent is in none of the
 * statuses of `ending`, and the transaction has to be rolled back.
 *
 * @param now milliseconds since the epoch
 */
export async function revokeAgent(
  db: Db,
  agent: Revocable,
  ending: Ending,
  now: number,
): Promise<EndedRequest[] | undefined> {
  const { organisation_id: organisationId, id, parent_id: parent, expires_at: expiresAt } = agent;
  const place = { organisationId, id };
  // The parent's row first: the lock order for creating and ending children.
  if (parent !== null) await freeChildSlot(db, { organisationId, id: parent });
  const isEnded =
    ending === 'expired'
      ? await expireChild(db, place, now)
      : await moveAgent(db, place, { ...ending, to: 'revoked' }, now);
  if (!isEnded) return undefined;
  return await endWhatTheyHave(db, place, now, ending === 'expired' ? (expiresAt ?? now) : now);
}

/** The result for the children of an agent whose key was replaced: how many were revoked, and their ended requests, to be announced. */
export type EndedChildren = { count: number; requests: EndedRequest[] };

/** Revokes the live children of an agent in the transaction of `db`: a thief of the agent's former credential may have created them. */
export async function revokeChildren(
  db: Db,
  { organisationId, id }: { organisationId: string; id: string },
  now: number,
): Promise<EndedChildren> {
  // The parent's row first: no child can be created or ended until the transaction ends.
  await freeChildSlots(db, { organisationId, id });
  const ids = await listLivingChildren(db, { organisationId, id });
  const detail =
    'Its parent was revoked and came back, or its key was replaced, or its workload was replaced or removed.';
  const ending = { from: ['active', 'suspended'], cause: 'owner_manual', detail } as const;
  const requests = ids.length === 0 ? [] : await revokeAgents(db, { organisationId, ids }, ending, now);
  return { count: ids.length, requests: present(requests, 'children under the lock of their parent') };
}

/**
 * Revokes several agents of an organisation, some thousands at most, with one statement of each kind; child slots must be released already.
 * Undefined: one of the agents is in none of the statuses, and the transaction has to be rolled back.
 */
export async function revokeAgents(
  db: Db,
  { organisationId, ids }: { organisationId: string; ids: readonly string[] },
  ending: Exclude<Ending, 'expired'>,
  now: number,
): Promise<EndedRequest[] | undefined> {
  const agents = { organisationId, id: ids };
  const moved = await moveAgents(db, agents, { ...ending, to: 'revoked' }, now);
  return moved === ids.length ? await endWhatTheyHave(db, agents, now, now) : undefined;
}

/** Lists the oldest agents in these statuses, children included: these are younger than their parents. */
export async function listLiveAgents(
  db: Db,
  { organisationId, statuses, limit }: { organisationId: string; statuses: readonly AgentStatus[]; limit: number },
): Promise<AgentTable[]> {
  return await db
    .selectFrom('agents')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('status', 'in', statuses)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Ends the keys, tokens and authorisations of agents, and expires their pending requests as of `at`. Returns the requests. */
async function endWhatTheyHave(db: Db, agents: AgentRef, now: number, at: number): Promise<EndedRequest[]> {
  const { organisationId, id } = agents;
  await destroyUncollectedKey(db, agents);
  await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: id }, now);
  await endSecretAuthorizationsOf(db, agents, now);
  await endMcpAuthorisationsOf(db, agents, now);
  await endStaticKeysOf(db, agents, now);
  const requests = await endWaitingOf(db, agents, at);
  // Last, because it has to see a standing approval of a decision that was being committed: the statement before has waited for that.
  await endStandingOfAgents(db, organisationId, [id].flat(), now);
  return requests;
}

/** Expires, as of `at`, the pending requests of agents and their children. Returns which. */
async function endWaitingOf(db: Db, { organisationId, id }: AgentRef, at: number): Promise<EndedRequest[]> {
  const ids = [id].flat();
  const family = () =>
    db
      .selectFrom('agents')
      .select('id')
      .where('organisation_id', '=', organisationId)
      .where('id', 'in', ids)
      .unionAll(
        db
          .selectFrom('agents')
          .select('id')
          .where('organisation_id', '=', organisationId)
          .where('parent_id', 'in', ids),
      );
  const end = (table: 'approvals' | 'access_requests') =>
    db
      .updateTable(table)
      // An earlier expiry stays.
      .set((eb) => ({
        status: 'expired' as const,
        expires_at: eb.case().when('expires_at', '>', at).then(at).else(eb.ref('expires_at')).end(),
      }))
      .where('organisation_id', '=', organisationId)
      .where('agent_id', 'in', family())
      .where('status', '=', 'pending')
      .returning(['organisation_id', 'id'])
      .execute();
  return [...(await end('approvals')), ...(await end('access_requests'))];
}
