/** The console's help for writing rules: starting points, variables of conditions, and the comparison of two lists of rules. */
import { describe, expect, test } from 'vitest';
import { STARTS } from '../../broker/console/static/policies/starts.js';
import { FUNCTIONS, VARIABLES, WHOLE } from '../../broker/console/static/policy/condition-words.js';
import { differences, merged } from '../../broker/console/static/policy/differ.js';
import { isVariable } from '../../broker/policy/conditions/variables.ts';
import { DEFAULT_POLICY_RULES } from '../../broker/policy/default-policy.ts';
import type { RuleSource } from '../../broker/policy/facts.ts';
import { ruleProblems } from '../../broker/policy/rules/compile.ts';

const problemsOf = (rules: unknown) => ruleProblems(rules as RuleSource[], 'policy');
const rule = (name: string, effect = 'deny') => ({ name, effect });

describe('starting points and variables', () => {
  test.each(Object.entries(STARTS))('the starting point %s compiles', (_name, { rules }) => {
    expect(problemsOf(rules)).toEqual([]);
  });

  test('the careful starting point is the policy that every new organisation has', () => {
    expect(STARTS.careful?.rules).toEqual(DEFAULT_POLICY_RULES);
  });

  test.each([...FUNCTIONS, ...WHOLE])('$insert is a condition', ({ insert }) => {
    const when = /[<>=!]|has\(|With\(|matches|contains| in |exists|all\(/.test(insert) ? insert : `${insert} != ''`;
    expect(problemsOf([{ effect: 'deny', when: insert.startsWith('size') ? `${insert} > 1` : when }])).toEqual([]);
  });

  test.each([...VARIABLES])('the variable $insert can be read in a condition', ({ insert }) => {
    const wanted = insert === 'request.git' || insert === 'caller.verified' ? `has(${insert})` : `[${insert}] != []`;
    expect(problemsOf([{ effect: 'deny', when: wanted }])).toEqual([]);
  });

  test('every variable of conditions is offered in the console', () => {
    const offered = new Set(VARIABLES.map(({ insert }) => insert.split('.')[0] ?? ''));
    expect([...offered].every(isVariable)).toBe(true);
    const [problem] = problemsOf([{ effect: 'deny', when: 'nothing_of_that_name' }]);
    const known = problem?.message.split('knows ')[1]?.split(', ') ?? [];
    expect([...offered].sort()).toEqual(known.sort());
  });
});

describe('comparing and merging lists of rules', () => {
  const base = [rule('a'), rule('b'), rule('c')];

  test('order is not a difference; a rule with the same name counts as changed, others as added or removed', () => {
    expect(differences(base, [...base].reverse())).toEqual([]);
    expect(differences(base, [rule('c'), rule('b', 'allow'), rule('d')])).toEqual([
      { before: rule('a'), after: undefined },
      { before: rule('b'), after: rule('b', 'allow') },
      { before: undefined, after: rule('d') },
    ]);
  });

  test('concurrent changes of two owners are merged; a rule that both changed is kept twice', () => {
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
