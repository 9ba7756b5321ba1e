/** Random facts and asks about the CRM of world.ts, for the properties of deciding. */
import fc from 'fast-check';
import {
  type Ask,
  type CallAsk,
  type Constraints,
  type Facts,
  type Grant,
  METHODS,
  REF_CHANGES,
  type RuleSource,
} from '../../broker/policy/facts.ts';
import { agent, call, crmRules, guardrailsOf, NOW, policyOf } from './world.ts';

export const some = <T>(...values: T[]) => fc.constantFrom(...values);
export const sometimes = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });

export const CONDITIONS = [
  'request.method == "GET"',
  'request.body.amount > 10',
  'has(request.body.amount) && request.body.amount > 10',
  'request.query.a == "1"',
  'request.body.missing == 1',
  'agent.name == "triage"',
  'agent.parent_agent_id == "agt_pppppppppppppppppppp"',
];

export const ruleOf = <E extends RuleSource['effect']>(effects: fc.Arbitrary<E>): fc.Arbitrary<RuleSource> =>
  fc
    .record({
      effect: effects,
      platforms: sometimes(fc.array(some('crm', '*', 'mail', 'c*'), { maxLength: 2 })),
      scopes: sometimes(fc.array(some('crm:*', 'crm:*.read', 'crm:contacts.write', '*'), { maxLength: 2 })),
      methods: sometimes(fc.subarray([...METHODS])),
      endpoints: sometimes(
        fc.array(
          some('/contacts', '/contacts/*', '/contacts/**', '/contacts/7', '/**', '/*/export', '/admin/**', '/messages'),
          {
            maxLength: 2,
          },
        ),
      ),
      when: fc.option(some(...CONDITIONS), { nil: undefined, freq: 3 }),
    })
    .map(
      (rule) =>
        Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== undefined)) as unknown as RuleSource,
    );

export const policyRules = fc.array(ruleOf(some('allow', 'allow', 'allow', 'require_approval', 'deny')), {
  maxLength: 6,
});
export const guardRules = fc
  .array(ruleOf(some('require_approval', 'deny', 'suspend')), { maxLength: 3 })
  .map((rules) => rules.map((rule, i) => ({ ...rule, name: `g${i}` })));

export const SCOPES = ['crm:contacts.read', 'crm:contacts.write', 'crm:messages.send', 'crm:admin', 'crm:ghost'];
export const constraints: fc.Arbitrary<Constraints> = fc
  .record({
    recipients: sometimes(fc.subarray(['@acme.example', 'ann@acme.example', '@evil.example', 'bob@evil.example'])),
    repos: fc.option(fc.subarray(['acme/*', 'ACME/app', 'evil/x']), { nil: undefined, freq: 8 }),
    allow_repo_creation: sometimes(fc.boolean()),
    refs: fc.option(some(['agent/*'], ['**', 'refs/tags/v*'], ['main'], []), { nil: undefined, freq: 8 }),
    ref_changes: fc.option(fc.subarray([...REF_CHANGES]), { nil: undefined, freq: 8 }),
  })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)));
export const moment = fc.option(some(NOW - 1, NOW, NOW + 1, NOW + 60_000), { nil: null, freq: 3 });
export const anyGrant: fc.Arbitrary<Grant> = fc.record({
  id: fc.uuid(),
  platformId: fc.constant('crm'),
  connectionId: some(null, 'conn-main', 'conn-2'),
  scopes: fc.subarray(SCOPES, { minLength: 2 }),
  constraints,
  requireApproval: some(false, false, true),
  expiresAt: moment,
});
export const platform = {
  platformId: 'crm',
  name: 'CRM',
  version: 1,
  suspended: false,
  defaultConnectionId: 'conn-main',
  rules: crmRules,
};

export const world = fc
  .record({ policy: policyRules, guardrails: guardRules, grants: fc.array(anyGrant, { minLength: 1, maxLength: 3 }) })
  .map(
    ({ policy, guardrails, grants }): Facts => ({
      agent: agent(),
      platform,
      grants,
      policy: policyOf(...policy),
      guardrails: guardrailsOf(...guardrails),
      breakers: [],
    }),
  );

/** Calls that fall under a scope, one of each operation. */
export const COVERED: [scope: string, method: CallAsk['method'], path: string][] = [
  ['crm:contacts.read', 'GET', '/contacts'],
  ['crm:contacts.read', 'GET', '/contacts/7'],
  ['crm:contacts.write', 'POST', '/contacts'],
  ['crm:contacts.write', 'PATCH', '/contacts/7'],
  ['crm:messages.send', 'POST', '/messages'],
  ['crm:admin', 'GET', '/contacts/export'],
  ['crm:admin', 'DELETE', '/contacts/7'],
  ['crm:admin', 'GET', '/admin/users/7'],
];
export const body = some<CallAsk['body']>(
  undefined,
  {},
  { amount: 5 },
  { amount: 50 },
  { amount: 'x', to: 'ann@acme.example' },
  { to: 'bob@evil.example' },
);
export const query = some('', 'a=1', 'a=1&a=2');
export const covered: fc.Arbitrary<Ask> = fc
  .record({
    operation: some(...COVERED),
    body,
    query,
    connection: fc.option(some('conn-main', 'conn-2'), { nil: undefined, freq: 3 }),
  })
  .map(({ operation: [scope, method, path], body, query, connection }) => ({
    platformId: 'crm',
    scope,
    ...(connection !== undefined && { connectionId: connection }),
    call: call({ method, path, body, query }),
  }));
export const anyAsk: fc.Arbitrary<Ask> = fc.oneof(
  covered,
  covered.chain((ask) => some(...SCOPES).map((scope) => ({ ...ask, scope }))),
  covered.map(({ call: _call, ...standing }) => standing),
);
