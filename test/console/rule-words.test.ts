/** What the console offers to write rules with: starting points, words of conditions, and how two lists of rules are compared. */
import { describe, expect, test } from 'vitest';
import { STARTS } from '../../broker/console/static/policies/starts.js';
import { FUNCTIONS, VARIABLES, WHOLE } from '../../broker/console/static/policy/condition-words.js';
import { differences, merged } from '../../broker/console/static/policy/differ.js';
import { ruleProblems } from '../../broker/policy/compile-rules.ts';
import { isVariable } from '../../broker/policy/condition-variables.ts';
import { DEFAULT_POLICY_RULES } from '../../broker/policy/default-policy.ts';
import type { RuleSource } from '../../broker/policy/facts.ts';

const problemsOf = (rules: unknown) => ruleProblems(rules as RuleSource[], 'policy');
const rule = (name: string, effect = 'deny') => ({ name, effect });

describe('what rules are written with', () => {
  test.each(Object.entries(STARTS))('the starting point %s compiles', (_name, { rules }) => {
    expect(problemsOf(rules)).toEqual([]);
  });

  test('the careful one is the policy that every organisation has from its start', () => {
    expect(STARTS.careful?.rules).toEqual(DEFAULT_POLICY_RULES);
  });

  test.each([...FUNCTIONS, ...WHOLE])('$insert is a condition', ({ insert }) => {
    const when = /[<>=!]|has\(|With\(|matches|contains| in |exists|all\(/.test(insert) ? insert : `${insert} != ''`;
    expect(problemsOf([{ effect: 'deny', when: insert.startsWith('size') ? `${insert} > 1` : when }])).toEqual([]);
  });

  test.each([...VARIABLES])('$insert can be read', ({ insert }) => {
    const wanted = insert === 'request.git' || insert === 'caller.verified' ? `has(${insert})` : `[${insert}] != []`;
    expect(problemsOf([{ effect: 'deny', when: wanted }])).toEqual([]);
  });

  test('every variable of conditions is offered', () => {
    const offered = new Set(VARIABLES.map(({ insert }) => insert.split('.')[0] ?? ''));
    expect([...offered].every(isVariable)).toBe(true);
    const [problem] = problemsOf([{ effect: 'deny', when: 'nothing_of_that_name' }]);
    const known = problem?.message.split('knows ')[1]?.split(', ') ?? [];
    expect([...offered].sort()).toEqual(known.sort());
  });
});

describe('what differs', () => {
  const base = [rule('a'), rule('b'), rule('c')];

  test('order is no difference, a rule of the same name is changed, others came or went', () => {
    expect(differences(base, [...base].reverse())).toEqual([]);
    expect(differences(base, [rule('c'), rule('b', 'allow'), rule('d')])).toEqual([
      { before: rule('a'), after: undefined },
      { before: rule('b'), after: rule('b', 'allow') },
      { before: undefined, after: rule('d') },
    ]);
  });

  test('what two owners made of the same rules goes together; what both changed stands twice', () => {
    const mine = [rule('b', 'allow'), rule('c'), rule('mine')];
    const theirs = [rule('a'), rule('b'), rule('theirs')];
    expect(merged(base, mine, theirs)).toEqual([rule('theirs'), rule('b', 'allow'), rule('mine')]);
    expect(merged(base, [rule('a', 'allow'), ...base.slice(1)], [rule('a', 'hold'), ...base.slice(1)])).toEqual([
      rule('a', 'hold'),
      ...base.slice(1),
      rule('a', 'allow'),
    ]);
    expect(merged(base, [...base, rule('d')], [...base, rule('d')]), 'both added the same').toEqual([
      ...base,
      rule('d'),
    ]);
  });
});
