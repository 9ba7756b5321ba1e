/** Computes whether and why an agent as a whole is halted, and what ends the halt (specification, AgentHalt). */
import { BREAKER_LIMITS, refuses, refusesUntil } from './breaker.ts';
import type { AgentFacts, AgentHalt, BreakerFacts, HaltCause, Instant } from './facts.ts';

const INSTRUCTIONS: Record<HaltCause, string> = {
  suspended_by_policy:
    'A guardrail of the organisation suspended this agent. Stop calling; ask the owner to review the last denied call and to resume the agent.',
  owner_manual: 'The owner stopped this agent. Stop calling; ask the owner before going on.',
  anomaly_auto_suspend:
    'The broker suspended this agent because its calls were unusual. Stop calling; ask the owner to review them and to resume the agent.',
  breaker_auth_failure:
    'Too many tokens for this agent had a wrong signature. Check that the right private key is used, and try again after the time in retry_after_seconds.',
  breaker_api_error:
    'Too many malformed calls. Read the `detail` of the last 400 answers, correct the calls, and try again after the time in retry_after_seconds.',
  breaker_upstream_failure:
    'Every platform that this agent has a grant on failed too often. Wait for the time in retry_after_seconds, then try one call; it closes the breaker of its platform when it goes well.',
  unknown: 'This agent is stopped. Stop calling; ask the owner.',
};

const REVOKED = 'This agent was revoked permanently; its calls are refused. Ask the owner for a new agent.';
const EXPIRED = 'The lifetime of this agent is over. Ask its parent agent or the owner for a new one.';

/**
 * Returns the halt of an agent: revoked, expired, suspended, or stopped by a breaker, in this order. Of several breakers, the one that closes last is
 * reported; breakers of single platforms halt no agent. Undefined for an agent that may call, and for one that was never active (which is a 409).
 */
export function haltOf(agent: AgentFacts, breakers: readonly BreakerFacts[], now: Instant): AgentHalt | undefined {
  const { status } = agent;
  if (status === 'pending' || status === 'pending_bind') return undefined;
  const end = agent.expiresAt !== null && agent.expiresAt <= now ? agent.expiresAt : undefined;
  // An expired agent may be stored as revoked without a cause: nobody stopped it.
  const wasStopped = status === 'revoked' || status === 'deleted';
  if (wasStopped && !(end !== undefined && agent.statusCause === 'unknown')) return stopped(agent, 'revoked', REVOKED);
  if (end !== undefined) return expired(end);
  if (status === 'suspended') return stopped(agent, 'suspended', INSTRUCTIONS[agent.statusCause ?? 'unknown']);
  let last: BreakerFacts | undefined;
  for (const breaker of breakers) {
    if (breaker.platformId !== undefined) continue;
    if (refuses(breaker, now) && (last === undefined || refusesUntil(breaker) > refusesUntil(last))) last = breaker;
  }
  return last === undefined ? undefined : open(last, now);
}

function stopped(agent: AgentFacts, state: 'suspended' | 'revoked', instructions: string): AgentHalt {
  return {
    state,
    since: agent.statusSince === null ? null : timeText(agent.statusSince),
    cause: agent.statusCause ?? 'unknown',
    detail: agent.statusDetail,
    recoverable_by: 'owner',
    retry_after_seconds: null,
    instructions,
  };
}

function expired(at: Instant): AgentHalt {
  return {
    state: 'revoked',
    since: timeText(at),
    cause: 'unknown',
    detail: 'the agent expired',
    recoverable_by: 'owner',
    retry_after_seconds: null,
    instructions: EXPIRED,
  };
}

function open(breaker: BreakerFacts, now: Instant): AgentHalt {
  const wait = refusesUntil(breaker) - now;
  const { strikes, windowMs } = BREAKER_LIMITS[breaker.cause];
  const what = breaker.cause === 'breaker_upstream_failure' ? 'the breaker of every granted platform' : 'the breaker';
  return {
    state: 'breaker_open',
    since: timeText(breaker.openedAt),
    cause: breaker.cause,
    detail:
      breaker.openUntil > now
        ? `${strikes} failures within ${windowMs / 1000} s opened ${what}, until ${timeText(breaker.openUntil)}`
        : 'a trial call is in progress',
    recoverable_by: 'time',
    retry_after_seconds: Math.ceil(wait / 1000),
    instructions: INSTRUCTIONS[breaker.cause],
  };
}

function timeText(instant: Instant): string {
  return new Date(instant).toISOString();
}
