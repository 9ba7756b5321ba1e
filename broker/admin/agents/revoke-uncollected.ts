/** Revokes registered agents whose keys were not collected before the deadline. */

import type { Changing } from '../../audit/record-change.ts';
import { correlationId } from '../../crypto/ids.ts';
import type { Instant } from '../../policy/facts.ts';
import { destroyUncollectedKey, listUncollected } from '../../store/registrations.ts';
import { endAgent } from './end-agent.ts';

const DETAIL = 'Nobody collected its key within an hour of the approval.';

/**
 * Revokes the agents, recorded, and destroys their keys in the same transaction; the keys could not be collected any more. An agent that cannot be
 * recorded now does not delay the others, and is retried in the next round.
 */
export async function revokeUncollected(services: Changing, now: Instant): Promise<void> {
  const { broker } = services;
  for (const { organisation_id, id, agent } of await listUncollected(broker.store.db, now)) {
    const by = { owner: { id: 'time', organisation_id }, how: 'time' as const, correlationId: correlationId() };
    const place = { organisationId: organisation_id, id: agent.id };
    // No owner revoked it, so the cause is the same as for an expired lifetime.
    const ending = { from: ['pending'], cause: 'unknown', detail: DETAIL } as const;
    try {
      const change = { reason: 'agent_revoked', detail: DETAIL };
      const isEnded = await endAgent(services, by, change, agent, ending, { registration: id });
      // Another process changed the agent and usually destroyed the key, too; if not, it is destroyed now.
      if (!isEnded) await destroyUncollectedKey(broker.store.db, place);
    } catch (error) {
      broker.log.error({ err: error, agent: agent.agent_id }, 'an agent without its key could not be revoked');
    }
  }
}
