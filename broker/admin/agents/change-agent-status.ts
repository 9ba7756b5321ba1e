/** Suspends, resumes, revokes and deletes agents for owners: in force from the next decision, on every replica. */

import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../../audit/record-change.ts';
import type { AgentStatus, HaltCause, Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, moveAgent } from '../../store/agents.ts';
import { endMcpAuthorisationsOf } from '../../store/mcp-authorisations.ts';
import { forgetRefusals } from '../../store/refusal-counts.ts';
import type { Db } from '../../store/store.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { ChangeRefused } from '../refused.ts';
import { endAgent } from './end-agent.ts';
import { loadAgent } from './find-agent.ts';

type Move = { reason: string; from: readonly AgentStatus[]; to: AgentStatus; cause: HaltCause | null };

/** `reason`: reason code of the audit event. */
const MOVES = {
  suspend: { reason: 'agent_suspended', from: ['active'], to: 'suspended', cause: 'owner_manual' },
  resume: { reason: 'agent_resumed', from: ['suspended'], to: 'active', cause: null },
  revoke: {
    reason: 'agent_revoked',
    from: ['active', 'suspended', 'pending', 'pending_bind'],
    to: 'revoked',
    cause: 'owner_manual',
  },
  delete: { reason: 'agent_deleted', from: ['revoked'], to: 'deleted', cause: 'owner_manual' },
} as const satisfies Record<string, Move>;

export type AgentVerb = keyof typeof MOVES;

/** Statuses from which an agent can be revoked. */
export const REVOCABLE = MOVES.revoke.from;

/**
 * Changes the status of an agent, and records it. Returns the updated agent.
 *
 * @param detail the owner's own text, shown to the agent as the detail of its halt
 * @throws ChangeRefused when there is no such agent, or `verb` is not possible in its status; AuditUnavailable
 */
export async function changeAgentStatus(
  services: Changing,
  by: ChangingOwner,
  { id, verb, detail }: { id: string; verb: AgentVerb; detail: string | null },
): Promise<AgentTable> {
  const { broker } = services;
  const { organisation_id: organisationId } = by.owner;
  const agent = await loadAgent(broker.store.db, organisationId, id);
  const { reason, ...move }: Move = MOVES[verb];
  const find = async (db: Db) => present(await findAgent(db, organisationId, agent.id), 'agent');
  const refused = ({ status }: AgentTable) =>
    new ChangeRefused('conflict', `This agent is ${status}; ${verb} takes one that is ${move.from.join(' or ')}.`);
  if (verb === 'revoke') {
    const ended = await endAgent(services, by, { reason, detail }, agent, {
      from: move.from,
      cause: MOVES.revoke.cause,
      detail,
    });
    const now = await find(broker.store.db);
    if (!ended) throw refused(now);
    return now;
  }
  // What stops an agent waits for no other change; what lets it go on is refused to an admin who lost the role meanwhile.
  const record = verb === 'resume' ? recordInTurn : recordChange;
  return await record(services, by, { reason, detail, agent }, async (db) => {
    const moved = await setAgentStatus(db, agent, { ...move, detail }, broker.clock());
    const now = await find(db);
    if (!moved) throw refused(now);
    return now;
  });
}

/**
 * Changes an agent's status in the transaction of `db`, to any but `revoked`. Resuming resets its count of refusals; restoring a revoked agent does
 * not restore its MCP clients. Returns false when the agent is in none of the statuses `from`; then the transaction has to be rolled back.
 */
export async function setAgentStatus(
  db: Db,
  { organisation_id: organisationId, id }: Pick<AgentTable, 'organisation_id' | 'id'>,
  move: Omit<Move, 'reason'> & { detail: string | null },
  now: Instant,
): Promise<boolean> {
  const place = { organisationId, id };
  if (!(await moveAgent(db, place, move, now))) return false;
  if (move.from.includes('suspended') && move.to === 'active') await forgetRefusals(db, organisationId, id);
  if (move.from.includes('revoked') && move.to !== 'deleted') await endMcpAuthorisationsOf(db, place, now);
  return true;
}
