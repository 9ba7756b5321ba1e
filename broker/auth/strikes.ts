/** Wrong signatures, counted towards an agent's breaker (specification, Authentication 3). */
import type { Broker } from '../broker.ts';
import { BREAKER_LIMITS } from '../policy/breaker.ts';
import { strike } from '../store/breakers.ts';
import type { FactsRow } from '../store/facts-columns.ts';

/** `(agent, source address)`. The facts are of a question from that address. */
export type CountStrike = (agent: FactsRow, source: string) => Promise<void>;

/** Told of an agent for which tokens with wrong signatures have opened a breaker, and of the address they came from. */
export type BreakerOpened = (agent: FactsRow, source: string) => Promise<void>;

/**
 * Every wrong signature is one strike, in a statement that all replicas share. While the breaker of the address is open another
 * one changes nothing, so nothing is written: an address makes the store write five times a minute at most.
 */
export function countStrikes(broker: Broker, opened: BreakerOpened): CountStrike {
  return async (agent, source) => {
    const now = broker.clock();
    if (agent.auth_open_until !== null && agent.auth_open_until > now) return;
    const key = {
      organisation_id: agent.organisation_id,
      agent_id: agent.id,
      cause: 'breaker_auth_failure' as const,
      key: source,
    };
    const row = await strike(broker.store.db, key, BREAKER_LIMITS.breaker_auth_failure, now);
    if (row.opened_at === now) await opened(agent, source);
  };
}
