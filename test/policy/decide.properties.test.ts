import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attenuate } from '../../broker/policy/attenuation.ts';
import { decide } from '../../broker/policy/decide.ts';
import {
  AGENT_STATUSES,
  type Ask,
  type BreakerFacts,
  type CallAsk,
  type Facts,
  type Grant,
  METHODS,
  type RuleSource,
  type Verdict,
} from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { compileGuardrails, compilePolicy } from '../../broker/policy/rules/compile.ts';
import { sized } from '../world/runner/thorough.ts';
import {
  anyAsk,
  anyGrant,
  covered,
  guardRules,
  moment,
  platform,
  policyRules,
  ruleOf,
  SCOPES,
  some,
  world,
} from './arbitraries.ts';
import { agent, crmRules, grant, guardrailsOf, NOW, parent, policyOf } from './world.ts';

/** Open, half-open, and half-open with a trial in flight. */
const breakerOf: fc.Arbitrary<BreakerFacts> = fc.record({
  cause: some<BreakerFacts['cause']>('breaker_api_error', 'breaker_upstream_failure'),
  openedAt: fc.constant(NOW - 60_000),
  openUntil: some(NOW - 1, NOW + 1),
  trialUntil: some(null, NOW - 1, NOW + 1),
});

const SEVERITY: Record<Verdict['kind'], number> = { allow: 0, hold: 1, deny: 2 };
const severity = (facts: Facts, ask: Ask) => SEVERITY[decide(facts, ask, NOW).kind];

describe('rules cannot be bypassed', () => {
  test('the order of rules never matters', () => {
    fc.assert(
      fc.property(
        policyRules.chain((rules) =>
          fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length })),
        ),
        guardRules.chain((rules) =>
          fc.tuple(fc.constant(rules), fc.shuffledSubarray(rules, { minLength: rules.length })),
        ),
        world,
        anyAsk,
        ([policy, otherPolicy], [guards, otherGuards], facts, ask) => {
          const given = (p: RuleSource[], g: RuleSource[]) =>
            decide({ ...facts, policy: policyOf(...p), guardrails: guardrailsOf(...g) }, ask, NOW);
          const [one, other] = [given(policy, guards), given(otherPolicy, otherGuards)];
          expect([other.kind, other.reason, other.conditional]).toEqual([one.kind, one.reason, one.conditional]);
        },
      ),
      { numRuns: sized(150, 500) },
    );
  });

  test('decide is deterministic and does not modify the facts', () => {
    fc.assert(
      fc.property(world, anyAsk, (facts, ask) => {
        const before = JSON.stringify([facts, ask]);
        const first = decide(facts, ask, NOW);
        expect(decide(facts, ask, NOW)).toEqual(first);
        expect(JSON.stringify([facts, ask])).toBe(before);
      }),
      { numRuns: sized(150, 500) },
    );
  });

  test('adding a guardrail never allows more', () => {
    fc.assert(
      fc.property(
        guardRules,
        ruleOf(some('require_approval', 'deny', 'suspend')),
        world,
        anyAsk,
        (guards, more, facts, ask) => {
          const before = severity({ ...facts, guardrails: guardrailsOf(...guards) }, ask);
          const after = severity({ ...facts, guardrails: guardrailsOf(...guards, { ...more, name: 'more' }) }, ask);
          expect(after).toBeGreaterThanOrEqual(before);
        },
      ),
      { numRuns: sized(150, 500) },
    );
  });

  test('adding a deny rule never allows more, and adding a hold rule never allows what was denied', () => {
    fc.assert(
      fc.property(
        policyRules,
        ruleOf(some('deny')),
        ruleOf(some('require_approval')),
        world,
        anyAsk,
        (rules, denies, holds, facts, ask) => {
          const given = (...all: RuleSource[]) => severity({ ...facts, policy: policyOf(...all) }, ask);
          const before = given(...rules);
          expect(given(...rules, denies)).toBeGreaterThanOrEqual(before);
          expect(given(...rules, holds)).toBeGreaterThanOrEqual(Math.min(before, SEVERITY.hold));
        },
      ),
      { numRuns: sized(150, 500) },
    );
  });
});

describe('children', () => {
  test('a child can never do what its parent cannot do now', () => {
    fc.assert(
      fc.property(
        world,
        fc.array(anyGrant, { maxLength: 3 }),
        some(...AGENT_STATUSES),
        moment,
        fc.array(breakerOf, { maxLength: 1 }),
        anyAsk,
        (facts, parentGrants, status, expiresAt, breakers, ask) => {
          const theirs = parent({ status, expiresAt, grants: parentGrants, breakers });
          const child = decide({ ...facts, agent: agent({ parent: theirs }) }, ask, NOW);
          if (child.kind === 'deny') return;
          // The parent's ask names the connection that the child's grant uses.
          const connectionId = child.grant!.connectionId ?? 'conn-main';
          const own = severity(
            {
              ...facts,
              agent: agent({ name: theirs.name, id: theirs.id, status, expiresAt }),
              grants: parentGrants,
              breakers,
            },
            { ...ask, connectionId },
          );
          expect(own).toBeLessThanOrEqual(SEVERITY[child.kind]);
        },
      ),
      { numRuns: sized(400, 1_500) },
    );
  });

  test('the intersection of two grants allows no more than either, in either order', () => {
    const facts = (one: Grant): Facts => ({
      agent: agent(),
      platform,
      grants: [one],
      policy: policyOf({ effect: 'allow' }),
      guardrails: guardrailsOf(),
      breakers: [],
    });
    fc.assert(
      fc.property(anyGrant, anyGrant, anyAsk, (a, b, ask) => {
        const here = { ...ask, connectionId: 'conn-main' };
        const at = (one: Grant) => severity(facts({ ...one, connectionId: null }), here);
        expect(at(attenuate(a, b))).toBe(Math.max(at(a), at(b)));
        expect(at(attenuate(b, a))).toBe(at(attenuate(a, b)));
      }),
      { numRuns: sized(400, 1_500) },
    );
  });
});

describe('standing questions and concrete calls', () => {
  const unlimited = world.map((facts): Facts => ({ ...facts, grants: [grant({ scopes: SCOPES })] }));
  const RULES = ['denied_by_policy', 'denied_by_guardrail'];

  test('an unconditional answer holds for every call that the scope covers', () => {
    fc.assert(
      fc.property(unlimited, covered, (facts, ask) => {
        const { call: _call, ...question } = { ...ask, connectionId: 'conn-main' };
        const standing = decide(facts, question, NOW);
        const real = decide(facts, { ...ask, connectionId: 'conn-main' }, NOW);
        if (standing.kind === 'deny') expect(real.kind).toBe('deny');
        else if (!standing.conditional) expect([real.kind, real.reason]).toEqual([standing.kind, standing.reason]);
        // A conditional answer is the best result that a call can have.
        else expect(SEVERITY[real.kind]).toBeGreaterThanOrEqual(SEVERITY[standing.kind]);
        if (standing.kind === 'allow' && !standing.conditional) expect(RULES).not.toContain(real.reason);
      }),
      { numRuns: sized(400, 1_500) },
    );
  });
});

test('deciding never throws, whatever the facts', () => {
  const wild = fc.oneof(
    fc.string(),
    some('', '/', '//', '/%', '/%zz', '/a/%E0%A4', 'x', '\ud800', '__proto__', '/repos/a/b/compare/%'),
  );
  const wildCall: fc.Arbitrary<CallAsk> = fc.record({
    method: some(...METHODS),
    path: wild,
    query: wild,
    headers: fc.dictionary(fc.string(), fc.string()),
    body: fc.option(
      fc.object({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value))),
      { nil: undefined },
    ),
  });
  const facts = fc.record({
    status: some(...AGENT_STATUSES),
    expiresAt: fc.option(fc.integer(), { nil: null }),
    hasPlatform: some(true, true, true, false),
    suspended: some(false, false, true),
    grants: fc.array(anyGrant, { maxLength: 3 }),
    parentGrants: fc.option(fc.array(anyGrant, { maxLength: 2 }), { nil: undefined, freq: 3 }),
    policy: fc.option(policyRules, { nil: undefined }),
    guardrails: guardRules,
    breakers: fc.array(
      fc.record({
        cause: some<BreakerFacts['cause']>('breaker_auth_failure', 'breaker_api_error', 'breaker_upstream_failure'),
        openedAt: fc.integer(),
        openUntil: fc.integer(),
        trialUntil: some(null, NOW - 1, NOW + 1),
      }),
      { maxLength: 2 },
    ),
    rules: some(
      crmRules,
      compilePlatformRules({
        kind: 'graphql',
        scopes: { 'crm:admin': ['mutation *'] },
        recipients: { 'mutation *': ['/input/to'] },
      }),
      compilePlatformRules({ kind: 'mcp', scopes: { 'crm:admin': ['tool *'] } }),
    ),
  });
  fc.assert(
    fc.property(facts, wildCall, some(...SCOPES, ''), wild, (f, concrete, scope, connectionId) => {
      const given: Facts = {
        agent: agent({
          status: f.status,
          expiresAt: f.expiresAt,
          ...(f.parentGrants && {
            parent: parent({ grants: f.parentGrants }),
          }),
        }),
        ...(f.hasPlatform && { platform: { ...platform, suspended: f.suspended, rules: f.rules } }),
        grants: f.grants,
        ...(f.policy && { policy: compilePolicy({ id: 'p', name: 'p', version: 1, rules: f.policy }) }),
        guardrails: compileGuardrails({ version: 1, rules: f.guardrails }),
        breakers: f.breakers,
      };
      for (const ask of [
        { platformId: 'crm', scope, call: concrete },
        { platformId: 'crm', scope },
        { platformId: connectionId, scope, connectionId },
      ]) {
        const verdict = decide(given, ask, NOW);
        expect([...verdict.evaluated, ...verdict.notEvaluated]).toHaveLength(11);
        expect(verdict.detail).not.toBe('');
      }
    }),
    { numRuns: sized(150, 500) },
  );
});
