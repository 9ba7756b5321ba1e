import { describe, expect, test } from 'vitest';
import { decide } from '../../broker/policy/decide.ts';
import { ALLOW_ALL, ask, facts, guardrailsOf, NOW, policyOf } from './world.ts';

describe('standing questions', () => {
  const standing = (...rules: Parameters<typeof policyOf>) => {
    const { kind, reason, conditional } = decide(facts({ policy: policyOf(...rules) }), ask(), NOW);
    return { kind, reason, conditional };
  };
  const allow = { kind: 'allow', reason: 'approved' };
  const hold = { kind: 'hold', reason: 'approval_required_by_policy' };
  const denied = { kind: 'deny', reason: 'denied_by_policy' };
  const WHEN = 'request.endpoint == "/contacts"';

  test.each([
    [
      'a rule that covers every operation applies',
      [ALLOW_ALL, { effect: 'deny', methods: ['GET'] }],
      { ...denied, conditional: false },
    ],
    [
      'a rule whose endpoints cover every operation applies',
      [ALLOW_ALL, { effect: 'require_approval', endpoints: ['/contacts/**'] }],
      { ...hold, conditional: false },
    ],
    [
      'a rule that covers no operation does not apply',
      [ALLOW_ALL, { effect: 'deny', methods: ['POST'] }],
      { ...allow, conditional: false },
    ],
    [
      'a rule that covers some operations makes the verdict conditional',
      [ALLOW_ALL, { effect: 'deny', endpoints: ['/contacts/*'] }],
      { ...allow, conditional: true },
    ],
    [
      'a rule with a condition makes the verdict conditional',
      [ALLOW_ALL, { effect: 'deny', when: WHEN }],
      { ...allow, conditional: true },
    ],
    [
      'a rule with a condition for another scope does not make the verdict conditional',
      [ALLOW_ALL, { effect: 'deny', scopes: ['crm:x'], when: WHEN }],
      { ...allow, conditional: false },
    ],
    [
      'an allow rule with a condition does not change a hold',
      [{ effect: 'require_approval' }, { effect: 'allow', when: WHEN }],
      { ...hold, conditional: false },
    ],
    [
      'a scope that only a condition allows stays usable',
      [{ effect: 'allow', when: WHEN }],
      { ...allow, conditional: true },
    ],
    [
      'a scope that is only allowed in part stays usable',
      [{ effect: 'allow', endpoints: ['/contacts'] }],
      { ...allow, conditional: true },
    ],
    [
      'a scope that a condition holds and nothing allows is held',
      [{ effect: 'require_approval', when: WHEN }],
      { ...hold, conditional: true },
    ],
    ['a scope that is only ever denied is denied', [{ effect: 'deny', when: WHEN }], { ...denied, conditional: false }],
    [
      'a denied scope is not conditional',
      [{ effect: 'deny' }, { effect: 'allow', when: WHEN }],
      { ...denied, conditional: false },
    ],
  ] as [string, Parameters<typeof policyOf>, object][])('%s', (_sentence, rules, expected) => {
    expect(standing(...rules)).toEqual(expected);
  });

  test('a guardrail with a condition makes the verdict conditional, one that certainly holds makes it a hold', () => {
    const guarded = (...rules: Parameters<typeof guardrailsOf>) =>
      decide(facts({ guardrails: guardrailsOf(...rules) }), ask(), NOW);
    expect(guarded({ name: 'g', effect: 'deny', when: WHEN })).toMatchObject({ kind: 'allow', conditional: true });
    expect(guarded({ name: 'g', effect: 'require_approval' }, { name: 'h', effect: 'deny', when: WHEN })).toMatchObject(
      { kind: 'hold', conditional: true },
    );
    expect(guarded({ name: 'g', effect: 'require_approval' })).toMatchObject({ kind: 'hold', conditional: false });
  });
});

test.each([
  ['contacts.read', ', but "crm:contacts.read"'],
  ['CRM:Contacts:Read', ', but "crm:contacts.read"'],
  ['other:contacts_write', ', but "crm:contacts.write"'],
  ['crm:contacts.rewrite', ''],
])('a refusal of an unknown scope says that the platform does not have it: %s', (scope, but) => {
  const problem = `platform crm has no scope "${scope}"${but}`;
  expect(decide(facts(), ask({ scope }), NOW)).toMatchObject({
    reason: 'scope_not_granted',
    detail: `the grant does not include this scope; ${problem}`,
  });
  const onlyReads = policyOf({ effect: 'allow', scopes: ['crm:contacts.read'] });
  expect(decide(facts({ policy: onlyReads }), ask({ scope }), NOW)).toMatchObject({
    reason: 'denied_by_policy',
    detail: `no rule of policy "careful" allows this call; ${problem}`,
  });
});

test('a refusal of a known scope does not say so', () => {
  const detail = 'the grant does not include this scope';
  expect(decide(facts(), ask({ scope: 'crm:admin' }), NOW)).toMatchObject({ reason: 'scope_not_granted', detail });
});
