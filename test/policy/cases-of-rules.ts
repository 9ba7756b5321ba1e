/** Cases of verdicts that depend on guardrails and policies. */
import { ALLOW_ALL, type Case, facts, guardrailsOf, policyOf, READ, WRITE } from './world.ts';

export const RULE_CASES: Case[] = [
  [
    'a guardrail that denies',
    facts({ guardrails: guardrailsOf({ name: 'no', effect: 'deny' }) }),
    READ,
    ['deny', 'denied_by_guardrail', /guardrail no denies/],
  ],
  [
    'a guardrail that suspends',
    facts({ guardrails: guardrailsOf({ name: 'trap', effect: 'suspend', endpoints: ['/contacts'] }) }),
    READ,
    ['deny', 'denied_by_guardrail', /suspends/],
  ],
  [
    'a guardrail that requires approval',
    facts({ guardrails: guardrailsOf({ name: 'ask', effect: 'require_approval' }) }),
    READ,
    ['hold', 'approval_required_by_guardrail'],
  ],
  [
    'a guardrail for other methods',
    facts({ guardrails: guardrailsOf({ name: 'no', effect: 'deny', methods: ['DELETE'] }) }),
    READ,
    ['allow', 'approved'],
  ],
  ['no policy', facts({ policy: undefined as never }), READ, ['deny', 'no_policy_assigned']],
  ['a policy without rules', facts({ policy: policyOf() }), READ, ['deny', 'denied_by_policy', /no rule/]],
  [
    'a policy that allows other scopes',
    facts({ policy: policyOf({ effect: 'allow', scopes: ['crm:*.write'] }) }),
    READ,
    ['deny', 'denied_by_policy'],
  ],
  [
    'a policy that allows other platforms',
    facts({ policy: policyOf({ effect: 'allow', platforms: ['mail'] }) }),
    READ,
    ['deny', 'denied_by_policy'],
  ],
  [
    'a policy whose rule has an empty list of scopes',
    facts({ policy: policyOf({ effect: 'allow', scopes: [] }) }),
    READ,
    ['deny', 'denied_by_policy'],
  ],
  [
    'a policy that denies',
    facts({ policy: policyOf(ALLOW_ALL, { effect: 'deny', methods: ['GET'] }) }),
    READ,
    ['deny', 'denied_by_policy', /rule 2/],
  ],
  [
    'a policy that requires approval',
    facts({ policy: policyOf({ effect: 'require_approval' }, ALLOW_ALL) }),
    READ,
    ['hold', 'approval_required_by_policy'],
  ],
  [
    'a deny rule whose condition is met',
    facts({ policy: policyOf(ALLOW_ALL, { effect: 'deny', when: 'request.body.name == "Ann"' }) }),
    WRITE,
    ['deny', 'denied_by_policy'],
  ],
  [
    'a deny rule whose condition is not met',
    facts({ policy: policyOf(ALLOW_ALL, { effect: 'deny', when: 'request.body.name == "Bob"' }) }),
    WRITE,
    ['allow', 'approved'],
  ],
  [
    'DOS-07 a deny rule whose condition fails',
    facts({ policy: policyOf(ALLOW_ALL, { effect: 'deny', when: 'request.body.amount > 1' }) }),
    WRITE,
    ['deny', 'denied_by_policy', /condition failed.*amount/],
  ],
  [
    'DOS-07 a hold rule whose condition fails',
    facts({ policy: policyOf(ALLOW_ALL, { effect: 'require_approval', when: 'request.body.amount > 1' }) }),
    WRITE,
    ['hold', 'approval_required_by_policy', /condition failed/],
  ],
  [
    'DOS-07 an allow rule whose condition fails',
    facts({ policy: policyOf({ effect: 'allow', when: 'request.body.amount > 1' }) }),
    WRITE,
    ['deny', 'denied_by_policy', /rule 1 failed.*amount/],
  ],
];
