import { describe, expect, test } from 'vitest';
import { type Access, accessTo } from '../../broker/policy/access.ts';
import { decide } from '../../broker/policy/decide.ts';
import type { Facts, RuleSource } from '../../broker/policy/facts.ts';
import { ALLOW_ALL, agent, facts, grant, guardrailsOf, NOW, parent, policyOf } from './world.ts';

const SEND = 'crm:messages.send';
const ADMIN = 'crm:admin';
const allow = (rule: Partial<RuleSource>): RuleSource => ({ effect: 'allow', ...rule });
const childOf = (scopes: string[], status: 'active' | 'revoked' = 'active', expiresAt: number | null = null) =>
  agent({ parent: parent({ status, grants: [grant({ scopes, expiresAt })] }) });

type Row = [sentence: string, facts: Facts, scope: string, kind: Access['kind'], reason?: string];

const ROWS: Row[] = [
  ['a scope that the grant has and the policy allows', facts(), SEND, 'usable'],
  [
    'a scope that the grant has, under a policy that requires an approval',
    facts({ policy: policyOf({ effect: 'require_approval' }) }),
    SEND,
    'usable',
  ],
  ['a scope that the grant has, while a breaker is open', facts({ breakers: [open()] }), SEND, 'usable'],
  ['a scope that the grant lacks', facts(), ADMIN, 'missing', 'not_granted'],
  ['a scope without any grant', facts({ grants: [] }), SEND, 'missing', 'not_granted'],
  [
    'a scope that the grant lacks, while a breaker is open',
    facts({ breakers: [open()] }),
    ADMIN,
    'missing',
    'not_granted',
  ],
  ['an expired grant', facts({ grants: [grant({ expiresAt: NOW })] }), SEND, 'missing', 'grant_expired'],
  [
    'a scope that an expired grant never had',
    facts({ grants: [grant({ expiresAt: NOW - 1 })] }),
    ADMIN,
    'missing',
    'grant_expired',
  ],
  ['no policy at all', { ...facts({ grants: [] }), policy: undefined } as never, SEND, 'missing', 'scope_denied'],
  [
    'a policy without a rule for the scope',
    facts({ policy: policyOf(allow({ scopes: ['crm:contacts.*'] })) }),
    SEND,
    'missing',
    'scope_denied',
  ],
  [
    'a policy that denies the scope',
    facts({ policy: policyOf(ALLOW_ALL, { effect: 'deny', scopes: [SEND] }) }),
    SEND,
    'refused',
  ],
  [
    'a policy that denies the scope, without a grant',
    facts({ grants: [], policy: policyOf({ effect: 'deny' }) }),
    SEND,
    'refused',
  ],
  [
    'a policy whose only rule for the scope denies some of its calls',
    facts({
      policy: policyOf(allow({ scopes: ['crm:contacts.*'] }), { effect: 'deny', scopes: [SEND], methods: ['DELETE'] }),
    }),
    SEND,
    'missing',
    'scope_denied',
  ],
  [
    'a policy whose only rule for the scope is a deny with a condition',
    facts({
      policy: policyOf(allow({ scopes: ['crm:contacts.*'] }), { effect: 'deny', when: 'request.method == "PUT"' }),
    }),
    SEND,
    'missing',
    'scope_denied',
  ],
  [
    'a policy that allows the scope and denies some of its calls',
    facts({ grants: [], policy: policyOf(ALLOW_ALL, { effect: 'deny', scopes: [ADMIN], methods: ['DELETE'] }) }),
    ADMIN,
    'missing',
    'not_granted',
  ],
  [
    'a guardrail that denies the scope',
    facts({ grants: [], guardrails: guardrailsOf({ name: 'no', effect: 'deny' }) }),
    SEND,
    'refused',
  ],
  [
    'a guardrail that suspends',
    facts({ guardrails: guardrailsOf({ name: 'no', effect: 'suspend' }) }),
    SEND,
    'refused',
  ],
  [
    'a guardrail that holds the scope',
    facts({ grants: [], guardrails: guardrailsOf({ name: 'ask', effect: 'require_approval' }) }),
    SEND,
    'missing',
    'not_granted',
  ],
  ['a suspended platform', facts({ platform: { ...facts().platform!, suspended: true } }), SEND, 'refused'],
  ['an unknown platform', { ...facts(), platform: undefined } as never, SEND, 'refused'],
  ['a scope that the platform does not have', facts(), 'crm:nothing', 'refused'],
  ['a scope that covers no operation', facts(), 'crm:ghost', 'refused'],
  ['a pattern in place of a scope', facts(), 'crm:*', 'refused'],
  [
    'a child whose parent has the scope',
    facts({ agent: childOf([SEND]), grants: [grant({ scopes: [] })] }),
    SEND,
    'missing',
    'not_granted',
  ],
  [
    'a child without a grant whose parent has the scope',
    facts({ agent: childOf([SEND]), grants: [] }),
    SEND,
    'missing',
    'not_granted',
  ],
  [
    'a child whose parent lacks the scope',
    facts({ agent: childOf([]), grants: [grant({ scopes: [] })] }),
    SEND,
    'refused',
  ],
  [
    'a child whose parent’s grant has expired',
    facts({ agent: childOf([SEND], 'active', NOW), grants: [] }),
    SEND,
    'refused',
  ],
  ['a child whose parent is revoked', facts({ agent: childOf([SEND], 'revoked'), grants: [] }), SEND, 'refused'],
];

function open() {
  return { cause: 'breaker_upstream_failure' as const, openedAt: NOW - 1, openUntil: NOW + 1_000, trialUntil: NOW + 1 };
}

describe('whether an agent can use a scope, or a grant would allow it', () => {
  test.each(ROWS)('%s', (_sentence, given, scope, kind, reason) => {
    const access = accessTo(given, { platformId: 'crm', scope }, NOW);
    expect(access).toMatchObject({ kind, ...(reason && { reason }) });
    expect(access.detail).toMatch(/^\S.*[^.]$/);
  });

  test('`usable` means that `decide` does not deny, and granting what is `missing` makes it so', () => {
    for (const [sentence, given, scope, kind, reason] of ROWS) {
      const calm = { ...given, breakers: [] };
      const ask = { platformId: 'crm', scope };
      expect(decide(calm, ask, NOW).kind !== 'deny', sentence).toBe(kind === 'usable');
      if (kind !== 'missing' || reason === 'scope_denied') continue;
      const grants = [grant({ scopes: [scope] })];
      expect(decide({ ...calm, grants }, ask, NOW).kind, sentence).not.toBe('deny');
    }
  });
});
