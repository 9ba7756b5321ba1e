/** Wrong signatures, counted towards an agent's breaker (specification, Authentication 3). */
import type { Broker } from '../broker.ts';
import { sha256Base64url } from '../crypto/canonical.ts';
import { BREAKER_LIMITS } from '../decision/breaker.ts';
import { strike } from '../store/breakers.ts';
import type { FactsRow } from '../store/facts.ts';

/** `(agent, source address, what was signed wrongly)`. */
export type CountStrike = (agent: FactsRow, source: string, signed: string) => Promise<void>;

/** Told of an agent for which tokens with wrong signatures have opened a breaker, and of the address they came from. */
export type BreakerOpened = (agent: FactsRow, source: string) => Promise<void>;

const KEPT_STRIKES = 10_000;

/** A client that repeats one bad token makes one mistake, not five: only distinct ones count. */
export function countStrikes(broker: Broker, opened: BreakerOpened): CountStrike {
  const struck = new Set<string>();
  return async (agent, source, signed) => {
    const seen = sha256Base64url(`${source} ${signed}`);
    if (struck.has(seen)) return;
    struck.add(seen);
    if (struck.size > KEPT_STRIKES) struck.delete(struck.values().next().value as string);
    const key = {
      organisation_id: agent.organisation_id,
      agent_id: agent.id,
      cause: 'breaker_auth_failure' as const,
      key: source,
    };
    const now = broker.clock();
    const row = await strike(broker.store.db, key, BREAKER_LIMITS.breaker_auth_failure, now);
    if (row.opened_at === now) await opened(agent, source);
  };
}
