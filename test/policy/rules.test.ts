import { describe, expect, test } from 'vitest';
import type { RuleSource } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { compileGuardrails, compilePolicy, ruleProblems } from '../../broker/policy/rules/compile.ts';
import { crmRules, policyOf } from './world.ts';

describe('rules that do not compile', () => {
  test.each([
    ['policy', { effect: 'suspend' }, ['effect'], 'only a guardrail'],
    ['guardrail', { name: 'x', effect: 'allow' }, ['effect'], 'never allows'],
    ['guardrail', { effect: 'deny' }, ['name'], 'has a name'],
    ['policy', { effect: 'deny', endpoints: ['/a', 'b'] }, ['endpoints', 1], 'begin with'],
    ['policy', { effect: 'deny', scopes: ['**'] }, ['scopes', 0], 'endpoints only'],
    ['policy', { effect: 'deny', platforms: [''] }, ['platforms', 0], 'empty'],
    ['policy', { effect: 'deny', when: 'request.body.a >' }, ['when'], 'end of input'],
  ] as const)('%s %j', (kind, rule, path, why) => {
    const [problem] = ruleProblems([rule as RuleSource], kind);
    expect(problem?.path).toEqual([0, ...path]);
    expect(problem?.message).toContain(why);
  });

  test('all problems are listed, each with its path', () => {
    const rules: RuleSource[] = [
      { effect: 'allow' },
      { effect: 'deny', endpoints: ['x'], when: '1' },
      { effect: 'suspend' },
    ];
    expect(ruleProblems(rules, 'policy').map(({ path }) => path)).toEqual([
      [1, 'endpoints', 0],
      [1, 'when'],
      [2, 'effect'],
    ]);
    expect(() => compilePolicy({ id: 'p', name: 'p', version: 1, rules })).toThrow('policy rule 1/endpoints/0');
  });

  test('two guardrails must have different names', () => {
    const twice: RuleSource[] = [
      { name: 'a', effect: 'deny' },
      { name: 'a', effect: 'deny' },
    ];
    expect(() => compileGuardrails({ version: 1, rules: twice })).toThrow('two guardrails');
    expect(compileGuardrails({ version: 1, rules: [twice[0]!, { ...twice[0]!, name: 'b' }] }).rules).toHaveLength(2);
  });
});

test('rules without a name are numbered', () => {
  expect(
    policyOf({ effect: 'allow' }, { name: 'mine', effect: 'deny' }, { effect: 'deny' }).rules.map(({ name }) => name),
  ).toEqual(['rule 1', 'mine', 'rule 3']);
});

describe('how many operations of a scope a rule covers', () => {
  const coverage = (rule: Partial<RuleSource>, scope: string, platform = crmRules) =>
    policyOf({ effect: 'deny', ...rule }).rules[0]!.coverage(platform, scope);

  test.each([
    [{}, 'crm:contacts.read', 'all'],
    [{ methods: ['GET'] }, 'crm:contacts.read', 'all'],
    [{ methods: ['GET'] }, 'crm:contacts.write', 'none'],
    [{ methods: ['POST'] }, 'crm:contacts.write', 'some'],
    [{ endpoints: ['/contacts/**'] }, 'crm:contacts.read', 'all'],
    [{ endpoints: ['/contacts'] }, 'crm:contacts.read', 'some'],
    [{ endpoints: ['/admin/**'] }, 'crm:contacts.read', 'none'],
    [{ endpoints: ['/contacts', '/contacts/*'] }, 'crm:contacts.read', 'all'],
    [{ endpoints: ['/contacts/**'], methods: ['DELETE'] }, 'crm:contacts.read', 'none'],
    [{ endpoints: ['/contacts/**'] }, 'crm:ghost', 'some'],
    [{ endpoints: ['/contacts/**'] }, 'crm:unknown', 'some'],
    [{ methods: [] }, 'crm:contacts.read', 'none'],
  ] as const)('%j on %s: %s', (rule, scope, expected) => {
    expect(coverage(rule, scope)).toBe(expected);
    expect(coverage(rule, scope)).toBe(expected);
  });

  test('GraphQL operations count as a POST to the GraphQL endpoint, tools as a POST to their path', () => {
    const graphql = compilePlatformRules({ kind: 'graphql', scopes: { read: ['query *'] } });
    const platform = compilePlatformRules({
      kind: 'rest',
      scopes: { read: ['query *'] },
      graphql: { path: '/graphql' },
    });
    const mcp = compilePlatformRules({ kind: 'mcp', scopes: { search: ['tool search_*', 'tool find'] } });
    expect(coverage({ methods: ['POST'] }, 'read', graphql)).toBe('all');
    expect(coverage({ methods: ['GET'] }, 'read', graphql)).toBe('none');
    expect(coverage({ endpoints: ['/'] }, 'read', graphql)).toBe('all');
    expect(coverage({ endpoints: ['/graphql'] }, 'read', platform)).toBe('all');
    expect(coverage({ endpoints: ['/repos/**'] }, 'read', platform)).toBe('none');
    expect(coverage({ endpoints: ['/tools/search_*'] }, 'search', mcp)).toBe('some');
    // A scope that has tools also covers their listing.
    expect(coverage({ endpoints: ['/tools/*'] }, 'search', mcp)).toBe('some');
    expect(coverage({ endpoints: ['/tools', '/tools/*'] }, 'search', mcp)).toBe('all');
    expect(coverage({ endpoints: ['/**'] }, 'search', mcp)).toBe('all');
    expect(coverage({ methods: ['POST'] }, 'search', mcp)).toBe('some');
    expect(coverage({ methods: ['GET'] }, 'search', mcp)).toBe('some');
    expect(coverage({ methods: ['GET', 'POST'] }, 'search', mcp)).toBe('all');
  });
});
