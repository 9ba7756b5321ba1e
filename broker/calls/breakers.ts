/** Breakers around a call: strikes, closing, and the trial of a half-open one. */

import { byBroker, type Changing, recordChange } from '../audit/record-change.ts';
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

/** Breakers that only an answer of the platform closes. */
const ofPlatform = (breakers: readonly BreakerFacts[]): BreakerFacts[] =>
  breakers.filter(({ platformId }) => platformId !== undefined);

/** The agent that a breaker belongs to: the caller, or its parent. */
type Whose = Pick<FactsRow, 'id' | 'agent_id' | 'organisation_id'>;

/** The trial of a half-open breaker, claimed by a call that is about to be sent. */
export type Trial = { agent: Whose; key: BreakerKey; takenAt: Instant };

/**
 * Claims the trials of the platform's half-open breakers. A child's call also claims its parent's, so that a parent cannot make extra calls
 * through children. Returns undefined when the breakers have changed, because another call claimed a trial or finished it; this call then
 * has to be decided again.
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
 * Releases trials that ended without a verdict, for example when the platform refused the credential, so that the next call can be the
 * trial. Never rejects: a trial that is not released here expires.
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
 * Closes the half-open breakers that an allowed call satisfies by itself: its signature is valid and it is well-formed. The platform's
 * answer does not matter for them. A failure to close a breaker does not stop the call.
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

/** Counts a strike of the caller; records an audit row when this opens the breaker. */
export async function countFailure(
  services: Changing,
  who: AgentPrincipal,
  cause: BreakerCause,
  platformId: string,
): Promise<void> {
  await countOne(services, who.agent, keyOf(who, cause, platformId));
}

/** Counts a failure of the platform, and opens again every breaker whose trial this call was. */
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

/** Closes the half-open breakers whose trial succeeded. */
export async function closeByTrial(services: Changing, trials: readonly Trial[]): Promise<void> {
  for (const { agent, key } of trials) await close(services, agent, key);
}

async function close(services: Changing, agent: Whose, key: BreakerKey): Promise<void> {
  const { store, clock } = services.broker;
  if (await closeBreaker(store.db, key, clock())) await noteBreaker(services, 'breaker_closed', agent, key);
}

/** Anyone can open these breakers: at most this many open addresses get an audit row, the rest is only logged. */
const MAX_ADDRESSES = 10;

const openAddresses = (
  { broker }: Uses<'clock' | 'store'>,
  { organisation_id, id: agent_id }: Parameters<typeof noteBreaker>[2],
) => countBreakersOpenAt(broker.store.db, { organisation_id, agent_id, cause: 'breaker_auth_failure' }, broker.clock());

/**
 * Records that a breaker opened or closed, without a receipt (specification, Audit receipts). The breaker's state holds even when this
 * cannot be recorded.
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
    if (cause === 'breaker_auth_failure' && (await openAddresses(services, agent)) > MAX_ADDRESSES) return;
    await recordChange(services, by, change, async (_db, note) => note({ cause }));
  } catch (error) {
    log.error({ err: error, agent: agent.agent_id }, 'could not record a breaker transition');
  }
}
