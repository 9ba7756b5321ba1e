/** Breakers around a call: the trial of a half-open one, strikes, and closing. */
import type { Broker } from '../broker.ts';
import { correlationId } from '../crypto/ids.ts';
import { BREAKER_LIMITS, type BreakerCause } from '../decision/breaker.ts';
import type { BreakerFacts, Instant } from '../decision/facts.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import { type BreakerKey, claimTrial, closeBreaker, countBreakersOpenAt, strike } from '../store/breakers.ts';
import type { FactsRow } from '../store/facts.ts';
import type { Governor } from './governor.ts';
import { recordChange } from './owner-change.ts';

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

/** Counts a failure; when it opens the breaker, that is on record. */
export async function countFailure(
  governor: Governor,
  who: AgentPrincipal,
  cause: BreakerCause,
  platformId: string,
): Promise<void> {
  const { store, clock } = governor.broker;
  const now = clock();
  const key = keyOf(who, cause, platformId);
  const row = await strike(store.db, key, BREAKER_LIMITS[cause], now);
  if (row.opened_at === now) await noteBreaker(governor, 'breaker_opened', who.agent, key);
}

/** Closes the half-open breakers whose trial went well. */
export async function closeBreakers(
  governor: Governor,
  who: AgentPrincipal,
  breakers: readonly BreakerFacts[],
  platformId: string,
): Promise<void> {
  for (const { cause } of breakers) {
    const key = keyOf(who, cause, platformId);
    if (await closeBreaker(governor.broker.store.db, key))
      await noteBreaker(governor, 'breaker_closed', who.agent, key);
  }
}

/** Strangers open these: those of so many addresses at once are on record, and the rest in the log. */
const MOST_ADDRESSES = 10;

const openAddresses = ({ broker }: Governor, { organisation_id, id: agent_id }: Parameters<typeof noteBreaker>[2]) =>
  countBreakersOpenAt(broker.store.db, { organisation_id, agent_id, cause: 'breaker_auth_failure' }, broker.clock());

/**
 * Puts on record that a breaker opened or closed. The address that wrong signatures came from stands in the row, and in no
 * receipt (specification, Receipt). The breaker stands also when this cannot be recorded.
 */
export async function noteBreaker(
  governor: Governor,
  reason: 'breaker_opened' | 'breaker_closed',
  agent: Pick<FactsRow, 'id' | 'agent_id' | 'organisation_id'>,
  { cause, key }: Pick<BreakerKey, 'cause' | 'key'>,
): Promise<void> {
  const { log } = governor.broker;
  log.warn({ agent: agent.agent_id, cause, about: key }, reason.replace('_', ' '));
  const by = {
    owner: { id: 'broker', organisation_id: agent.organisation_id },
    how: 'broker' as const,
    correlationId: correlationId(),
  };
  const change = {
    reason,
    agent,
    ...(cause === 'breaker_upstream_failure' && { platform: key }),
    ...(cause === 'breaker_auth_failure' && { detail: `from ${key}` }),
  };
  try {
    if (cause === 'breaker_auth_failure' && (await openAddresses(governor, agent)) > MOST_ADDRESSES) return;
    await recordChange(governor, by, change, async (_db, note) => note({ cause }));
  } catch (error) {
    log.error({ err: error, agent: agent.agent_id }, 'what became of a breaker could not be recorded');
  }
}
