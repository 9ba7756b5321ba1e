/** Agents that end for good, on record: owners revoke them, their time is over, or nobody collected their key. */
import { type Change, type Changing, type ChangingOwner, recordChange } from '../audit/record-change.ts';
import type { JsonObject } from '../policy/facts.ts';
import { type Ending, revokeAgent } from '../store/revoke-agent.ts';

/** Undoes the event of whoever was not first. */
class EndedBefore extends Error {}

/**
 * Ends an agent and what only a live one has a use for, announces the held calls and access requests that ended with it, and
 * records the event, in one transaction. Answers whether it did: false when the agent is in none of the statuses of `ending`.
 * Throws AuditUnavailable; then nothing is changed.
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
  try {
    const ended = await recordChange(services, by, { ...change, agent }, async (db, note) => {
      const requests = await revokeAgent(db, agent, ending, broker.clock());
      if (!requests) throw new EndedBefore();
      note(facts);
      for (const request of requests) await changes.announce(db, request);
      return requests;
    });
    for (const request of ended) changes.tell(request);
    return true;
  } catch (error) {
    if (error instanceof EndedBefore) return false;
    throw error;
  }
}
