/** Registered agents whose keys nobody collected in time: they end, so that nothing waits for somebody who never comes. */

import type { Changing } from '../audit/record-change.ts';
import { correlationId } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { destroyUncollectedKey, listUncollected } from '../store/registrations.ts';
import { endAgent } from './end-agent.ts';

const DETAIL = 'Nobody collected its key within an hour of the approval.';

/**
 * Revokes them, on record, and destroys their keys in the same transaction; nobody could collect those already. One that cannot be
 * recorded now keeps no other from its turn, and comes again in the next round.
 */
export async function revokeUncollected(services: Changing, now: Instant): Promise<void> {
  const { broker } = services;
  for (const { organisation_id, id, agent } of await listUncollected(broker.store.db, now)) {
    const by = { owner: { id: 'time', organisation_id }, how: 'time' as const, correlationId: correlationId() };
    const place = { organisationId: organisation_id, id: agent.id };
    // Nobody stopped it: as with a lifetime that is over.
    const ending = { from: ['pending'], cause: 'unknown', detail: DETAIL } as const;
    try {
      const change = { reason: 'agent_revoked', detail: DETAIL };
      const isEnded = await endAgent(services, by, change, agent, ending, { registration: id });
      // It was moved by somebody else, who destroyed the key, too; if not, it goes now.
      if (!isEnded) await destroyUncollectedKey(broker.store.db, place);
    } catch (error) {
      broker.log.error({ err: error, agent: agent.agent_id }, 'an agent without its key could not be revoked');
    }
  }
}
