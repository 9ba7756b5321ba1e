import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide } from '../../broker/policy/decide.ts';
import { AGENT_CASES, childOf, open } from './cases-of-agents.ts';
import { CALL_CASES, limited, onConnection } from './cases-of-calls.ts';
import { RULE_CASES } from './cases-of-rules.ts';
import { ALLOW_ALL, agent, ask, call, facts, grant, guardrailsOf, NOW, policyOf, READ, send, WRITE } from './world.ts';

const CASES = [...AGENT_CASES, ...RULE_CASES, ...CALL_CASES];

describe('verdict and reason', () => {
  test.each(CASES)('%s', (_sentence, given, question, [kind, reason, detail]) => {
    const verdict = decide(given, question, NOW);
    expect(verdict).toMatchObject({ kind, reason });
    if (detail) expect(verdict.detail).toMatch(detail);
  });

  test('every reason has a case', () => {
    const reasons = new Set(CASES.map(([, , , [, reason]]) => reason));
    expect(reasons.size).toBe(14 + 3 + 1);
  });
});

describe('other spellings of an endpoint', () => {
  const at = (path: string, rule: Parameters<typeof policyOf>[0]) =>
    decide(facts({ policy: policyOf(ALLOW_ALL, rule) }), ask({ call: call({ path }) }), NOW).kind;

  test('are matched by rules that deny or hold', () => {
    for (const path of ['/contacts/boss', '/contacts/Boss', '/contacts/boss;v=1']) {
      expect(at(path, { effect: 'deny', endpoints: ['/contacts/boss'] })).toBe('deny');
      expect(at(path, { effect: 'require_approval', endpoints: ['/contacts/boss'] })).toBe('hold');
    }
    expect(at('/contacts/bob', { effect: 'deny', endpoints: ['/contacts/boss'] })).toBe('allow');
  });

  test('are not matched by rules that allow', () => {
    const only = facts({ policy: policyOf({ effect: 'allow', endpoints: ['/contacts/boss'] }) });
    expect(decide(only, ask({ call: call({ path: '/contacts/boss' }) }), NOW).kind).toBe('allow');
    expect(decide(only, ask({ call: call({ path: '/contacts/Boss' }) }), NOW).kind).toBe('deny');
  });
});

describe('the evaluated checks', () => {
  test('an allowed call passed all checks', () => {
    expect(decide(facts(), READ, NOW)).toMatchObject({
      evaluated: [
        'status',
        'grant',
        'ttl',
        'breaker',
        'child_liveness',
        'guardrails',
        'policy',
        'scope',
        'endpoint',
        'recipient_constraints',
        'reach',
      ],
      notEvaluated: [],
    });
  });

  test('a standing question runs no concrete checks', () => {
    expect(decide(facts(), ask(), NOW)).toMatchObject({
      evaluated: ['status', 'grant', 'ttl', 'breaker', 'child_liveness', 'guardrails', 'policy', 'scope'],
      notEvaluated: ['endpoint', 'recipient_constraints', 'reach'],
    });
  });

  test('the first denial ends the checks', () => {
    const verdict = decide(facts({ grants: [grant({ expiresAt: 1 })], policy: policyOf() }), READ, NOW);
    expect(verdict).toMatchObject({ reason: 'grant_expired', evaluated: ['status', 'grant', 'ttl'] });
    expect(verdict.notEvaluated).toHaveLength(8);
  });

  test('with two holds, the first is the reason', () => {
    const given = facts({
      grants: [grant({ requireApproval: true })],
      guardrails: guardrailsOf({ name: 'ask', effect: 'require_approval' }),
    });
    expect(decide(given, READ, NOW).reason).toBe('approval_required_by_grant');
    expect(decide({ ...given, grants: [grant()] }, READ, NOW).reason).toBe('approval_required_by_guardrail');
  });

  test('the matching rules are listed, with the error of a condition that failed', () => {
    const given = facts({
      guardrails: guardrailsOf({ name: 'writes', effect: 'require_approval', methods: ['POST'] }),
      policy: policyOf(
        ALLOW_ALL,
        { effect: 'require_approval', when: 'request.body.amount > 1' },
        { effect: 'deny', methods: ['PUT'] },
      ),
    });
    expect(decide(given, WRITE, NOW).matched).toEqual([
      { source: 'guardrail', name: 'writes', effect: 'require_approval' },
      { source: 'policy', name: 'rule 1', effect: 'allow' },
      { source: 'policy', name: 'rule 2', effect: 'require_approval', error: 'there is no `amount`' },
    ]);
  });

  test('the verdict has the grant that was used, for a child as narrowed by its parent', () => {
    const narrow = decide(
      childOf({ grants: [grant({ scopes: ['crm:contacts.read'], expiresAt: NOW + 5 })] }),
      READ,
      NOW,
    );
    expect(narrow.grant).toMatchObject({ id: 'grant-1', scopes: ['crm:contacts.read'], expiresAt: NOW + 5 });
    expect(decide(facts({ grants: [] }), READ, NOW).grant).toBeUndefined();
  });

  test('without a connection the default grant is used, then the one on the default connection, then the only one', () => {
    const [other, main, none] = [
      grant({ id: 'other', connectionId: 'conn-2' }),
      grant({ id: 'main', connectionId: 'conn-main' }),
      grant({ id: 'none' }),
    ];
    expect(decide(facts({ grants: [other, main, none] }), READ, NOW).grant?.id).toBe('none');
    expect(decide(facts({ grants: [other, main] }), READ, NOW).grant?.id).toBe('main');
    expect(decide(facts({ grants: [other] }), READ, NOW).grant?.id).toBe('other');
    expect(decide(facts({ grants: [none, main] }), onConnection('conn-main'), NOW).grant?.id).toBe('main');
  });

  test('with grants on several connections and none on the default one a question has to name the connection', () => {
    const two = grant({ id: 'two', connectionId: 'conn-2', connection: { label: 'crm-two', status: 'active' } });
    const three = grant({ id: 'three', connectionId: 'conn-3' });
    for (const grants of [
      [two, three],
      [three, two],
    ]) {
      const refused = decide(facts({ grants }), READ, NOW);
      expect(refused).toMatchObject({ kind: 'deny', reason: 'scope_not_granted' });
      expect(refused.detail).toMatch(/connection_id .* one of conn-3, crm-two \(conn-2\)$/);
      expect(refused.grant).toBeUndefined();
      expect(decide(facts({ grants }), onConnection('conn-2', READ), NOW)).toMatchObject({
        kind: 'allow',
        grant: { id: 'two' },
      });
    }
    const twice = [two, { ...two, id: 'again' }];
    for (const grants of [twice, twice.toReversed()])
      expect(decide(facts({ grants }), READ, NOW)).toMatchObject({ kind: 'allow', grant: { id: 'again' } });
  });

  test('the grant that is used does not depend on the order of the grants', () => {
    const connections = fc.constantFrom(null, 'conn-main', 'conn-2', 'conn-3');
    const grantsAnd = fc
      .uniqueArray(fc.integer({ min: 1, max: 6 }), { maxLength: 4 })
      .chain((ids) => fc.tuple(...ids.map((id) => connections.map((on) => grant({ id: `g${id}`, connectionId: on })))))
      .chain((grants) => fc.tuple(fc.constant(grants), fc.shuffledSubarray(grants, { minLength: grants.length })));
    fc.assert(
      fc.property(grantsAnd, connections, ([grants, shuffled], named) => {
        const asked = named === null ? READ : { ...READ, connectionId: named };
        const [one, other] = [grants, shuffled].map((given) => decide(facts({ grants: given }), asked, NOW));
        expect(other).toEqual(one);
      }),
    );
  });
});

describe('the fields of a refusal', () => {
  test('the halt of a halted agent; none for a child of a halted parent', () => {
    const halted = facts({
      agent: agent({ status: 'suspended', statusCause: 'owner_manual', statusSince: NOW - 1000 }),
    });
    expect(decide(halted, READ, NOW)).toMatchObject({
      halt: { state: 'suspended', cause: 'owner_manual', recoverable_by: 'owner' },
    });
    expect(decide(facts({ breakers: [open] }), READ, NOW)).toMatchObject({
      halt: { state: 'breaker_open', retry_after_seconds: 59 },
    });
    expect(decide(childOf({ status: 'suspended' }), READ, NOW)).not.toHaveProperty('halt');
    expect(decide(facts({ grants: [] }), READ, NOW)).not.toHaveProperty('halt');
  });

  test('the guardrail that suspends', () => {
    const given = facts({
      guardrails: guardrailsOf({ name: 'a', effect: 'deny' }, { name: 'trap', effect: 'suspend' }),
    });
    expect(decide(given, READ, NOW)).toMatchObject({ suspend: { guardrail: 'trap' } });
    expect(decide(facts({ guardrails: guardrailsOf({ name: 'a', effect: 'deny' }) }), READ, NOW)).not.toHaveProperty(
      'suspend',
    );
  });

  test('the recipients and repositories that are not allowed', () => {
    expect(decide(limited(['@acme.example']), send({ to: 'ann@acme.example, x@evil.example' }), NOW)).toMatchObject({
      violating: ['x@evil.example'],
    });
  });
});
