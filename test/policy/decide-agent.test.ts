/** The refusal of an agent whatever it asks for, which a malformed call gets in place of its error. */
import { expect, test } from 'vitest';
import { decide, decideAgent } from '../../broker/policy/decide.ts';
import type { BreakerFacts, Facts } from '../../broker/policy/facts.ts';
import { agent, facts, NOW, parent, READ } from './world.ts';

const OPEN: BreakerFacts = { cause: 'breaker_api_error', openedAt: NOW - 1, openUntil: NOW + 60_000, trialUntil: null };
const OF_PLATFORM: BreakerFacts = { ...OPEN, cause: 'breaker_upstream_failure', platformId: 'crm' };
const childOf = (changes: Parameters<typeof parent>[0]) => ({ agent: agent({ parent: parent(changes) }) });

test.each<[who: string, changes: Partial<Facts>, reason: string, detail: RegExp]>([
  ['a pending agent', { agent: agent({ status: 'pending' }) }, 'agent_inactive', /is pending: .* collected$/],
  ['an agent without a key', { agent: agent({ status: 'pending_bind' }) }, 'agent_inactive', /bind: .* bound$/],
  ['a suspended agent', { agent: agent({ status: 'suspended' }) }, 'agent_suspended', /^the agent is suspended$/],
  [
    'a revoked agent',
    { agent: agent({ status: 'revoked', statusCause: 'owner_manual' }) },
    'agent_revoked',
    /revoked$/,
  ],
  [
    'an agent that was revoked before its end',
    { agent: agent({ status: 'revoked', statusCause: 'owner_manual', expiresAt: NOW }) },
    'agent_revoked',
    /the agent is revoked$/,
  ],
  ['an expired agent', { agent: agent({ expiresAt: NOW }) }, 'agent_revoked', /the agent expired$/],
  [
    'a revoked agent without a cause or an end',
    { agent: agent({ status: 'revoked', statusCause: 'unknown' }) },
    'agent_revoked',
    /the agent is revoked$/,
  ],
  ['an open breaker', { breakers: [OPEN] }, 'circuit_breaker_open', /^a circuit breaker of the agent is open$/],
  ['a suspended parent', childOf({ status: 'suspended' }), 'agent_suspended', /^the parent agent is suspended$/],
  ['a revoked parent', childOf({ status: 'revoked' }), 'agent_revoked', /^the parent agent is no longer active$/],
  ['an expired parent', childOf({ expiresAt: NOW }), 'agent_revoked', /^the parent agent expired$/],
  [
    'an open breaker of the parent',
    childOf({ breakers: [OPEN] }),
    'circuit_breaker_open',
    /of the parent agent is open$/,
  ],
])('%s is refused as with any call', (_who, changes, reason, detail) => {
  const refused = decideAgent(facts(changes), NOW)!;
  expect(refused).toMatchObject({ kind: 'deny', reason, detail: expect.stringMatching(detail) });
  const { detail: said, halt, retryAfterSeconds } = refused;
  expect(decide(facts(changes), READ, NOW)).toMatchObject({
    ...{ kind: 'deny', reason, detail: said },
    ...(halt && { halt }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
  expect(halt !== undefined, 'the halt of a parent is not the child’s').toBe(
    reason !== 'agent_inactive' && changes.agent?.parent === undefined,
  );
});

test.each<[who: string, changes: Partial<Facts>]>([
  ['an active agent', {}],
  ['an agent before its end', { agent: agent({ expiresAt: NOW + 1 }) }],
  ['an open breaker of one platform', { breakers: [OF_PLATFORM] }],
  ['an open breaker of one platform for the parent', childOf({ breakers: [OF_PLATFORM] })],
  ['a child', childOf({})],
])('%s is not refused', (_who, changes) => {
  expect(decideAgent(facts(changes), NOW)).toBeUndefined();
});

test('the checks that ran are named, and those that did not', () => {
  const { evaluated, notEvaluated } = decideAgent(facts({ breakers: [OPEN] }), NOW)!;
  expect(evaluated).toEqual(['status', 'breaker']);
  expect(notEvaluated).toContain('child_liveness');
  expect(notEvaluated).not.toContain('breaker');
});
