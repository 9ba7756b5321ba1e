/** Breakers around a call: strikes, closing, and the trial of a half-open one. */

import type { Changing } from '../audit/record-change.ts';
import { byBroker, recordChange } from '../audit/record-change.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker, Uses } from '../broker.ts';
import { BREAKER_LIMITS, type BreakerCause } from '../policy/breaker.ts';
import type { BreakerFacts, Facts, Instant } from '../policy/facts.ts';
import {
  type BreakerKey,
  claimTrial,
  closeBreaker,
  countBreakersOpenAt,
  releaseTrial,
  strike,
} from '../store/breakers.ts';
import type { FactsRow } from '../store/facts-columns.ts';

function keyOf(who: AgentPrincipal, cause: BreakerCause, platformId: string): BreakerKey {
  const key = { breaker_auth_failure: who.source, breaker_api_error: '', breaker_upstream_failure: platformId }[cause];
  return { organisation_id: who.agent.organisation_id, agent_id: who.agent.id, cause, key };
}

/** Those that only the platform's answer closes. */
const ofPlatform = (breakers: readonly BreakerFacts[]): BreakerFacts[] =>
  breakers.filter(({ platformId }) => platformId !== undefined);

/** Whose breaker it is: the caller's, or its parent's. */
type Whose = Pick<FactsRow, 'id' | 'agent_id' | 'organisation_id'>;

/** A trial call of a half-open breaker, taken by a call that is about to be sent. */
export type Trial = { agent: Whose; key: BreakerKey; takenAt: Instant };

/**
 * Takes the trials of the platform's breakers that are half-open: of a child's call its parent's, too, since it must not come to
 * more calls by its children. Undefined: the breakers are others by now, because another call has taken a trial or come to its
 * verdict; this call has to be decided again.
 */
export async function takeTrials(
  { store }: Pick<Broker, 'store'>,
  { agent }: AgentPrincipal,
  facts: Facts,
  platformId: string,
  now: Instant,
): Promise<Trial[] | undefined> {
  const { organisation_id, parent_id, parent_agent_id } = agent;
  const trialsOf = (whose: Whose, breakers: readonly BreakerFacts[] = []): Trial[] =>
    ofPlatform(breakers).map(({ cause }) => ({
      agent: whose,
      key: { organisation_id, agent_id: whose.id, cause, key: platformId },
      takenAt: now,
    }));
  const { parent } = facts.agent;
  const trials = trialsOf(agent, facts.breakers);
  if (parent && parent_id !== null)
    trials.push(...trialsOf({ organisation_id, id: parent_id, agent_id: parent_agent_id ?? '' }, parent.breakers));
  for (const [i, { key }] of trials.entries()) {
    if (await claimTrial(store.db, key, BREAKER_LIMITS[key.cause].openMs, now)) continue;
    for (const { key: taken } of trials.slice(0, i)) await releaseTrial(store.db, taken, now);
    return undefined;
  }
  return trials;
}

/**
 * Releases trials that came to no verdict, as when the platform did not take the credential, so that the next call can be
 * the trial. Never rejects: what is not released is free again after its time.
 */
export async function releaseTrials(
  { store, log }: Pick<Broker, 'log' | 'store'>,
  trials: readonly Trial[],
): Promise<void> {
  for (const { key, takenAt } of trials) {
    try {
      await releaseTrial(store.db, key, takenAt);
    } catch (error) {
      log.error({ err: error, agent: key.agent_id }, 'could not release the trial call of a half-open breaker');
    }
  }
}

/**
 * Closes the half-open breakers that a call which may be made says enough about: it was signed rightly, and it is well-formed.
 * What the platform makes of it is nothing to them. A breaker that cannot be closed keeps no call from being made.
 */
export async function closeByDecision(
  services: Changing,
  who: AgentPrincipal,
  breakers: readonly BreakerFacts[],
): Promise<void> {
  for (const { cause } of breakers) {
    if (cause === 'breaker_upstream_failure') continue;
    try {
      await close(services, who.agent, keyOf(who, cause, ''));
    } catch (error) {
      services.broker.log.error({ err: error, agent: who.agent.agent_id, cause }, 'could not close a breaker');
    }
  }
}

/** Counts a failure of the caller; when it opens the breaker, that is on record. */
export async function countFailure(
  services: Changing,
  who: AgentPrincipal,
  cause: BreakerCause,
  platformId: string,
): Promise<void> {
  await countOne(services, who.agent, keyOf(who, cause, platformId));
}

/** Counts a failure of the platform, and opens every breaker again whose trial the call was. */
export async function countUpstreamFailure(
  services: Changing,
  who: AgentPrincipal,
  platformId: string,
  trials: readonly Trial[],
): Promise<void> {
  await countFailure(services, who, 'breaker_upstream_failure', platformId);
  for (const { agent, key } of trials) if (agent.id !== who.agent.id) await countOne(services, agent, key);
}

async function countOne(services: Changing, agent: Whose, key: BreakerKey): Promise<void> {
  const { store, clock } = services.broker;
  const now = clock();
  const row = await strike(store.db, key, BREAKER_LIMITS[key.cause], now);
  if (row.opened_at === now) await noteBreaker(services, 'breaker_opened', agent, key);
}

/** Closes the half-open breakers whose trial went well. */
export async function closeByTrial(services: Changing, trials: readonly Trial[]): Promise<void> {
  for (const { agent, key } of trials) await close(services, agent, key);
}

async function close(services: Changing, agent: Whose, key: BreakerKey): Promise<void> {
  const { store, clock } = services.broker;
  if (await closeBreaker(store.db, key, clock())) await noteBreaker(services, 'breaker_closed', agent, key);
}

/** Strangers open these: those of so many addresses at once are on record, and the rest in the log. */
const MOST_ADDRESSES = 10;

const openAddresses = (
  { broker }: Uses<'clock' | 'store'>,
  { organisation_id, id: agent_id }: Parameters<typeof noteBreaker>[2],
) => countBreakersOpenAt(broker.store.db, { organisation_id, agent_id, cause: 'breaker_auth_failure' }, broker.clock());

/**
 * Puts on record that a breaker opened or closed, without a receipt (specification, Audit receipts). The breaker stands also
 * when this cannot be recorded.
 */
export async function noteBreaker(
  services: Changing,
  reason: 'breaker_opened' | 'breaker_closed',
  agent: Whose,
  { cause, key }: Pick<BreakerKey, 'cause' | 'key'>,
): Promise<void> {
  const { log } = services.broker;
  log.warn({ agent: agent.agent_id, cause, about: key }, reason.replace('_', ' '));
  const by = byBroker(agent.organisation_id);
  const change = {
    reason,
    agent,
    ...(cause === 'breaker_upstream_failure' && { platform: key }),
    ...(cause === 'breaker_auth_failure' && { detail: `from ${key}` }),
  };
  try {
    if (cause === 'breaker_auth_failure' && (await openAddresses(services, agent)) > MOST_ADDRESSES) return;
    await recordChange(services, by, change, async (_db, note) => note({ cause }));
  } catch (error) {
    log.error({ err: error, agent: agent.agent_id }, 'could not record a breaker transition');
  }
}
