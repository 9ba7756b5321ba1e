/** Counts wrong signatures towards an agent's breaker (specification, Authentication 3). */
import type { Broker } from '../broker.ts';
import { BREAKER_LIMITS } from '../policy/breaker.ts';
import { strike } from '../store/breakers.ts';
import type { FactsRow } from '../store/facts-columns.ts';

/** `(agent, source address)`. The facts were read for that address. */
export type CountStrike = (agent: FactsRow, source: string) => Promise<void>;

/** Called when wrong signatures from an address have opened a breaker of an agent. */
export type BreakerOpened = (agent: FactsRow, source: string) => Promise<void>;

/**
 * Counts every wrong signature as one strike in the store, by one atomic statement, for all replicas. While the breaker of the
 * address is open, further ones are not written: an address causes at most five writes a minute.
 */
export function countStrikes(broker: Pick<Broker, 'clock' | 'store'>, opened: BreakerOpened): CountStrike {
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
