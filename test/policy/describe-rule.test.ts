import { expect, test } from 'vitest';
import type { RuleSource } from '../../broker/policy/facts.ts';
import { compilePolicy } from '../../broker/policy/rules/compile.ts';
import { describeRule } from '../../broker/policy/rules/describe.ts';

test.each<[RuleSource, string]>([
  [{ effect: 'require_approval', methods: ['POST', 'PUT', 'PATCH'] }, 'POST, PUT, PATCH wait'],
  [{ effect: 'require_approval', methods: ['POST'] }, 'POST waits'],
  [{ effect: 'deny', methods: ['DELETE'], platforms: ['codehost'] }, 'DELETE on codehost is denied'],
  [{ effect: 'allow', scopes: ['*.read'] }, 'every call with *.read passes'],
  [{ effect: 'deny', methods: ['GET'], endpoints: ['/secrets/**'] }, 'GET /secrets/** is denied'],
  [{ effect: 'deny', endpoints: ['/a', '/b'] }, '/a, /b are denied'],
  [{ effect: 'deny', endpoints: ['/a', '/b', '/c', '/d', '/e', '/f'] }, '/a, /b, /c, /d and 2 more are denied'],
  [{ effect: 'suspend', methods: ['DELETE'] }, 'DELETE is denied and suspends the agent'],
  [
    { effect: 'require_approval', when: 'request.body.amount >\n  100' },
    'every call waits if request.body.amount > 100',
  ],
  [{ effect: 'require_approval', when: 'x'.repeat(500) }, `every call waits if ${'x'.repeat(100)}…`],
  [{ effect: 'deny', scopes: [] }, 'every call with nothing is denied'],
])('%j: %s', (rule, words) => {
  expect(describeRule(rule)).toBe(words);
});

test('only a rule without a name has a description', () => {
  const { rules } = compilePolicy({
    id: 'p',
    name: 'p',
    version: 1,
    rules: [{ effect: 'deny', name: 'mine' }, { effect: 'allow' }, { effect: 'deny', name: 'rule 2' }],
  });
  expect(rules.map(({ name, says }) => [name, says])).toEqual([
    ['mine', undefined],
    ['rule 2', 'every call passes'],
    ['rule 2', undefined],
  ]);
});
