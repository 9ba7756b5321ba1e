/** Ends agents, and records it: agents that owners revoke, that expire, or that did not claim their key. */
import { type Change, type Changing, type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { JsonObject } from '../../policy/facts.ts';
import { type Ending, revokeAgent } from '../../store/revoke-agent.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';

/**
 * Ends an agent with everything that belongs to it, announces the ended held calls and access requests, and records the event, in one transaction.
 * Returns false when the agent is in none of the statuses of `ending`. When it throws AuditUnavailable, nothing is changed.
 *
 * @param facts for the event and its receipt
 */
export async function endAgent(
  services: Changing,
  by: ChangingOwner,
  change: Omit<Change, 'agent'>,
  agent: Parameters<typeof revokeAgent>[1] & { agent_id: string },
  ending: Ending,
  facts: JsonObject = {},
): Promise<boolean> {
  const { broker, changes } = services;
  const ended = await recordChange(services, by, { ...change, agent }, async (tx, note) => {
    const requests = await revokeAgent(tx, agent, ending, broker.clock());
    if (!requests) return rollback('ended_before');
    note(facts);
    for (const request of requests) await changes.announce(tx, request);
    return requests;
  });
  if (ended instanceof RolledBack) return false;
  for (const request of ended) changes.tell(request);
  return true;
}
