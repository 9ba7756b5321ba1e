import { describe, expect, test } from 'vitest';
import { limitOf } from '../../broker/console/static/policies/effects.js';
import { countedBy } from '../../broker/policy/counted-limits.ts';
import { decide } from '../../broker/policy/decide.ts';
import type { AgentFacts, JsonObject, RuleSource } from '../../broker/policy/facts.ts';
import {
  describeLimit,
  describeLimitUse,
  type LimitSource,
  PERIODS,
  periodAt,
  reportedLimit,
} from '../../broker/policy/limit.ts';
import { compileGuardrails, ruleProblems } from '../../broker/policy/rules/compile.ts';
import { describeRule } from '../../broker/policy/rules/describe.ts';
import { ALLOW_ALL, agent, ask, call, facts, guardrailsOf, NOW, parent, policyOf, WRITE } from './world.ts';

const at = (text: string) => Date.parse(text);
const iso = ({ start, end }: { start: number; end: number }) => [
  new Date(start).toISOString(),
  new Date(end).toISOString(),
];

describe('periods', () => {
  test.each([
    ['hour', '2026-11-27T15:49:30.123Z', '2026-11-27T15:00:00.000Z', '2026-11-27T16:00:00.000Z'],
    ['day', '2026-11-27T23:59:59.999Z', '2026-11-27T00:00:00.000Z', '2026-11-28T00:00:00.000Z'],
    ['week', '2026-11-29T23:59:59.999Z', '2026-11-23T00:00:00.000Z', '2026-11-30T00:00:00.000Z'],
    ['week', '2026-11-30T00:00:00.000Z', '2026-11-30T00:00:00.000Z', '2026-12-07T00:00:00.000Z'],
    ['month', '2026-12-31T23:59:59.999Z', '2026-12-01T00:00:00.000Z', '2027-01-01T00:00:00.000Z'],
    ['month', '2028-02-29T12:00:00.000Z', '2028-02-01T00:00:00.000Z', '2028-03-01T00:00:00.000Z'],
  ] as const)('the %s of %s', (per, now, start, end) => {
    expect(iso(periodAt(per, at(now)))).toEqual([start, end]);
  });

  test('periods follow one another without a gap, and every time is within its own period', () => {
    for (const per of PERIODS)
      for (let now = periodAt(per, at('2026-01-01T00:00:00Z')).start; now < at('2027-03-01T00:00:00Z'); ) {
        const { start, end } = periodAt(per, now);
        expect([start, periodAt(per, end - 1).start, periodAt(per, end).start]).toEqual([now, now, end]);
        now = per === 'hour' ? end + 40 * (end - start) : end;
      }
  });
});

test('a limit is reported in fields and in words', () => {
  const charge = { source: 'guardrail', rule: 'refunds', limit: { most: 100, per: 'hour', together: false } } as const;
  const told = reportedLimit({ ...charge, amount: 30, used: 80 }, at('2026-11-27T15:10:00Z'));
  expect(told).toEqual({
    rule: 'refunds',
    most: 100,
    per: 'hour',
    used: 80,
    asked: 30,
    left: 20,
    resets_at: '2026-11-27T16:00:00.000Z',
  });
  expect(describeLimitUse(told)).toBe(
    '80 of 100 an hour are used, and it is 30; the next hour begins at 2026-11-27T16:00:00.000Z',
  );
  const one = (used: number) =>
    describeLimitUse(reportedLimit({ ...charge, amount: 1, used }, at('2026-11-27T15:10:00Z')));
  expect(one(99.5)).toMatch(/^99\.5 of 100 an hour are used, and it is 1; /);
  expect(one(100)).toMatch(/^100 of 100 an hour are used; /);
  expect(describeLimit({ most: 100, per: 'day', of: 'request.body.amount', together: true })).toBe(
    '100 a day of request.body.amount, of all agents together',
  );
  expect(describeRule({ effect: 'deny', scopes: ['stripe:refunds.write'], limit: { most: 20, per: 'day' } })).toBe(
    'every call with stripe:refunds.write is denied beyond 20 a day',
  );
});

describe('problems of a limit', () => {
  const limit = { most: 5, per: 'day' } as const;
  const problems = (rule: object, kind: 'policy' | 'guardrail' = 'guardrail') =>
    ruleProblems([{ name: 'r', effect: 'deny', limit, ...rule } as never], kind).map(({ path, message }) => [
      path.slice(1).join('.'),
      message,
    ]);

  test.each([
    [{}, []],
    [{ effect: 'require_approval' }, []],
    [{ effect: 'suspend' }, []],
    [{ effect: 'require_approval', remember: true }, [['remember', expect.stringContaining('beyond the limit')]]],
    [{ limit: { ...limit, of: 'request.body.amount' } }, []],
    [{ limit: { ...limit, of: 'request.bdy.amount' } }, [['limit.of', expect.stringContaining('bdy')]]],
    [{ limit: { ...limit, of: '1 +' } }, [['limit.of', expect.any(String)]]],
  ])('%j', (rule, expected) => {
    expect(problems(rule)).toEqual(expected);
  });

  const notANumber = 'the amount must be a number from 0 on, and is none';
  const outOfRange = 'the amount is not a number from 0 on';
  test.each([
    ['request.method', notANumber],
    ['request.body', notANumber],
    ['now', notANumber],
    ['has(request.body.amount)', notANumber],
    ['has(request.body.a) ? 1 : "1"', notANumber],
    ['request.body.a > 1', notANumber],
    ['-1', outOfRange],
    ['-0.5', outOfRange],
    ['2 - 3', outOfRange],
    ['true ? -1 : request.body.a', outOfRange],
    ['1.0 / 0.0', outOfRange],
  ])('an amount that is known to be no number from 0 on: %s', (of, message) => {
    expect(problems({ limit: { ...limit, of } })).toEqual([['limit.of', message]]);
  });

  test.each([
    '0',
    '1.5',
    'size(request.body.items)',
    '-request.body.a',
    'request.body.a - 1',
    'request.body["a"]',
    'double(request.body.a)',
    'now.getHours()',
    'request.body.items[0].a',
    'has(request.body.a) ? request.body.a : 0',
  ])('no problem with an amount that may be a number: %s', (of) => {
    expect(problems({ limit: { ...limit, of } })).toEqual([]);
  });

  test('in a policy, a rule that allows has no limit, and a rule with a limit has a name', () => {
    expect(problems({ effect: 'allow' }, 'policy')).toEqual([['limit', expect.stringContaining('has none')]]);
    expect(problems({ name: undefined }, 'policy')).toEqual([['name', expect.stringContaining('has a name')]]);
  });

  test('a version without limits is compiled as not reading past calls', () => {
    const of = (rules: object[]) => compileGuardrails({ version: 1, rules: rules as never }).readsPast;
    expect([of([]), of([{ name: 'a', effect: 'deny' }]), of([{ name: 'a', effect: 'deny', limit }])]).toEqual([
      false,
      false,
      true,
    ]);
  });
});

test.each([
  { most: 20, per: 'hour' },
  { most: 0.5, per: 'day', of: 'request.body.amount' },
  { most: 100, per: 'month', of: 'request.body.amount', together: true },
] as const)('the console describes %j in the same words as the broker', (limit) => {
  expect(limitOf(limit)).toBe(describeLimit(limit));
});

describe('the limits that a call counts towards', () => {
  const limited = (...limits: (LimitSource & { name?: string })[]) =>
    limits.map(({ name = 'money', ...limit }): RuleSource => ({ name, effect: 'deny', limit }));
  const counted = (of: string, body: JsonObject) =>
    countedBy(
      facts({ guardrails: guardrailsOf(...limited({ most: 100, per: 'day', of })) }),
      ask({ call: call({ method: 'POST', body }) }),
      NOW,
    )[0];

  test('of several readings of a call the largest amount counts, and an error instead of any amount', () => {
    for (const [amount, usually] of [
      ['has(request.body.rush) ? 50 : 1', 1],
      ['has(request.body.rush) ? 1 : 50', 50],
    ] as const) {
      expect(counted(amount, { Rush: true })?.amount).toBe(50);
      expect(counted(amount, {})?.amount).toBe(usually);
    }
    const of = 'has(request.body.rush) ? request.body.amount : 1';
    expect(counted(of, { Rush: true })).toMatchObject({ amount: undefined, error: expect.any(String) });
    expect(counted(of, { Rush: true, amount: 7 })?.amount).toBe(7);
    expect(counted(of, {})?.amount).toBe(1);
    expect(counted('request.body.amount', { Amount: 5 })).toMatchObject({ amount: undefined });
  });

  test('calls of a child count towards a limit that is about its parent', () => {
    const rule: RuleSource = {
      ...limited({ most: 1, per: 'day' })[0]!,
      when: `agent.name == "${parent().name}"`,
    };
    const countedFor = (one: AgentFacts) =>
      countedBy(facts({ agent: one, guardrails: guardrailsOf(rule) }), WRITE, NOW).map(({ rule: name }) => name);
    expect(countedFor(agent({ name: 'helper', parent: parent() }))).toEqual(['money']);
    expect(countedFor(agent({ name: 'helper' }))).toEqual([]);
  });

  test('each rule of a policy with a limit has a name of its own, by which it is counted', () => {
    const week = { most: 10, per: 'week' } as const;
    const day = { most: 5, per: 'day' } as const;
    const says = (rules: RuleSource[]) => ruleProblems(rules, 'policy').map(({ path, message }) => [...path, message]);
    const problem = 'there are two rules "money" with a limit, which is counted by the name of its rule';
    expect(says([ALLOW_ALL, ...limited(week, day)])).toEqual([[2, 'name', problem]]);
    expect(says(limited(week, { ...day, name: 'calls' }))).toEqual([]);
    expect(says([{ name: 'money', effect: 'deny', methods: ['DELETE'] }, ...limited(week)])).toEqual([]);
  });

  test.each([
    [[9, 4], 'allow'],
    [[10, 4], 'deny'],
    [[9, 5], 'deny'],
  ] as const)('each of two limits applies: with %j used', (used, kind) => {
    const rules = limited({ most: 10, per: 'week' }, { most: 5, per: 'day', name: 'calls' });
    const given = facts({ policy: policyOf(ALLOW_ALL, ...rules) });
    const charges = countedBy(given, WRITE, NOW).map((one, i) => ({ ...one, used: used[i]! }));
    const asked = { ...WRITE, call: { ...WRITE.call!, charges } };
    expect(decide(given, asked, NOW)).toMatchObject({ kind });
  });
});
