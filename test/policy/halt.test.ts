import { describe, expect, test } from 'vitest';
import { type BreakerFacts, HALT_CAUSES } from '../../broker/policy/facts.ts';
import { haltOf } from '../../broker/policy/halt.ts';
import { agent, NOW } from './world.ts';

const breaker = (changes: Partial<BreakerFacts> = {}): BreakerFacts => ({
  cause: 'breaker_upstream_failure',
  openedAt: NOW - 20_000,
  openUntil: NOW + 40_000,
  trialUntil: null,
  ...changes,
});

describe('the halt of an agent', () => {
  test('is undefined for an agent that may call, or may not call yet', () => {
    expect(haltOf(agent(), [], NOW)).toBeUndefined();
    expect(haltOf(agent({ status: 'pending' }), [breaker()], NOW)).toBeUndefined();
    expect(haltOf(agent({ status: 'pending_bind' }), [], NOW)).toBeUndefined();
    expect(haltOf(agent(), [breaker({ openUntil: NOW })], NOW)).toBeUndefined();
  });

  test('describes a suspension: when, why and who can end it', () => {
    const suspended = agent({
      status: 'suspended',
      statusSince: NOW - 1000,
      statusCause: 'suspended_by_policy',
      statusDetail: 'guardrail trap',
    });
    expect(haltOf(suspended, [breaker()], NOW)).toEqual({
      state: 'suspended',
      since: '2026-01-15T11:59:59.000Z',
      cause: 'suspended_by_policy',
      detail: 'guardrail trap',
      recoverable_by: 'owner',
      retry_after_seconds: null,
      instructions: expect.stringContaining('guardrail'),
    });
    expect(haltOf(agent({ status: 'suspended' }), [], NOW)).toMatchObject({ cause: 'unknown', since: null });
  });

  test('describes revoked and expired agents', () => {
    expect(haltOf(agent({ status: 'revoked', statusCause: 'owner_manual' }), [], NOW)).toMatchObject({
      state: 'revoked',
      cause: 'owner_manual',
    });
    expect(haltOf(agent({ status: 'deleted' }), [], NOW)).toMatchObject({ state: 'revoked' });
    expect(haltOf(agent({ expiresAt: NOW - 1 }), [], NOW)).toMatchObject({
      state: 'revoked',
      detail: 'the agent expired',
      since: '2026-01-15T11:59:59.999Z',
    });
  });

  test('names, of several open breakers, the one that closes last', () => {
    const halt = haltOf(agent(), [breaker(), breaker({ cause: 'breaker_api_error', openUntil: NOW + 50_001 })], NOW);
    expect(halt).toMatchObject({
      state: 'breaker_open',
      cause: 'breaker_api_error',
      recoverable_by: 'time',
      retry_after_seconds: 51,
    });
  });

  test('for a half-open breaker with a trial in flight, asks to wait until the trial expires', () => {
    const waits = breaker({ openUntil: NOW - 1, trialUntil: NOW + 12_001 });
    const opens = breaker({ cause: 'breaker_api_error', openUntil: NOW + 10_000 });
    expect(haltOf(agent(), [opens, waits], NOW)).toMatchObject({
      cause: 'breaker_upstream_failure',
      detail: 'a trial call is in progress',
      retry_after_seconds: 13,
    });
  });

  test('has instructions for people for every cause', () => {
    for (const cause of HALT_CAUSES) {
      const halt = haltOf(agent({ status: 'suspended', statusCause: cause }), [], NOW);
      expect(halt?.instructions).toMatch(/\. /);
    }
  });
});
