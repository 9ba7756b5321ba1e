/** Breakers around a call: the trial of a half-open one, strikes, and closing. */
import type { Broker } from '../broker.ts';
import { BREAKER_LIMITS, type BreakerCause } from '../decision/breaker.ts';
import type { BreakerFacts, Instant } from '../decision/facts.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import { type BreakerKey, claimTrial, closeBreaker, strike } from '../store/breakers.ts';

function keyOf(who: AgentPrincipal, cause: BreakerCause, platformId: string): BreakerKey {
  const key = { breaker_auth_failure: who.source, breaker_api_error: '', breaker_upstream_failure: platformId }[cause];
  return { organisation_id: who.agent.organisation_id, agent_id: who.agent.id, cause, key };
}

/** Takes the trial of every half-open breaker. False: another call has one of them, and this call must not go. */
export async function takeTrials(
  broker: Broker,
  who: AgentPrincipal,
  breakers: readonly BreakerFacts[],
  platformId: string,
  now: Instant,
): Promise<boolean> {
  for (const { cause } of breakers) {
    const { openMs } = BREAKER_LIMITS[cause];
    if (!(await claimTrial(broker.store.db, keyOf(who, cause, platformId), openMs, now))) return false;
  }
  return true;
}

/** Counts a failure; says so in the log when it opens the breaker. */
export async function countFailure(
  broker: Broker,
  who: AgentPrincipal,
  cause: BreakerCause,
  platformId: string,
): Promise<void> {
  const now = broker.clock();
  const row = await strike(broker.store.db, keyOf(who, cause, platformId), BREAKER_LIMITS[cause], now);
  if (row.opened_at === now)
    broker.log.warn({ agent: who.agent.agent_id, cause, platform: platformId }, 'breaker opened');
}

/** Closes the half-open breakers whose trial went well. */
export async function closeBreakers(
  broker: Broker,
  who: AgentPrincipal,
  breakers: readonly BreakerFacts[],
  platformId: string,
): Promise<void> {
  for (const { cause } of breakers) await closeBreaker(broker.store.db, keyOf(who, cause, platformId));
}
