/** Rules that look back: their compilation, the calls that they apply to and look back at, and their descriptions. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { afterOf } from '../../broker/console/static/policies/effects.js';
import { decide } from '../../broker/policy/decide.ts';
import { describeEarlier, type Earlier, untilOf } from '../../broker/policy/earlier.ts';
import { type Ask, type RuleSource, UnreadBody } from '../../broker/policy/facts.ts';
import { lookBack } from '../../broker/policy/look-back.ts';
import { ruleProblems } from '../../broker/policy/rules/compile.ts';
import { describeAfter, describeRule } from '../../broker/policy/rules/describe.ts';
import { covered, guardRules, policyRules } from './arbitraries.ts';
import { agent, ask, call, facts, guardrailsOf, NOW, parent, policyOf, READ, WRITE } from './world.ts';

const HOUR_MS = 3_600_000;
const RULE = {
  name: 'quiet',
  effect: 'deny',
  methods: ['POST'],
  after: { methods: ['GET'], within: '1h' },
} as const satisfies RuleSource;
const having = (ask: Ask, ...earlier: Earlier[]): Ask => ({ ...ask, call: { ...call(), ...ask.call, earlier } });
const BEFORE: Earlier = {
  source: 'guardrail',
  place: 0,
  auditId: '0193',
  madeAt: NOW - 1000,
  until: untilOf(HOUR_MS, NOW - 1000),
};

describe('rules that do not compile', () => {
  test.each([
    [{ effect: 'allow' }, ['after'], 'a rule that allows has none'],
    [{ limit: { most: 1, per: 'day' } }, ['after'], 'a rule with a limit has none'],
    [{ after: { within: '1h' } }, ['after'], 'says no calls'],
    [{ after: { methods: ['GET'], within: '0h' } }, ['after', 'within'], 'write a time'],
    [{ after: { methods: ['GET'], within: '721h' } }, ['after', 'within'], 'at most "30d"'],
    [{ after: { endpoints: ['/a', 'b'], within: '1h' } }, ['after', 'endpoints', 1], 'begin with'],
    [{ after: { when: 'request.bdy', within: '1h' } }, ['after', 'when'], 'bdy'],
  ] as const)('%j', (changes, path, why) => {
    const [problem] = ruleProblems([{ ...RULE, ...changes } as RuleSource], 'policy');
    expect(problem?.path).toEqual([0, ...path]);
    expect(problem?.message).toContain(why);
  });

  test('a look-back of 30 days, and a standing approval, are accepted', () => {
    const rule: RuleSource = {
      ...RULE,
      effect: 'require_approval',
      remember: true,
      after: { methods: ['GET'], within: '30d' },
    };
    expect(ruleProblems([rule], 'guardrail')).toEqual([]);
  });
});

describe('which calls a rule applies to, and which it looks back at', () => {
  const at = facts({ guardrails: guardrailsOf(RULE), policy: policyOf({ effect: 'allow' }, { ...RULE, name: 'two' }) });
  const of = (asked: Ask, given = at) => {
    const { looks, noted } = lookBack(given, asked, NOW);
    return [looks.map(({ source, place }) => `${source} ${place}`), noted.length];
  };

  test('a read is recorded for both rules, a write is checked by both', () => {
    expect(of(READ)).toEqual([[], 2]);
    expect(of(WRITE)).toEqual([['guardrail 0', 'policy 1'], 0]);
  });

  test('rules with the same look-back selection have the same text, in any order of their lists', () => {
    const texts = ['a', 'b'].map((_, i) => {
      const methods = i === 0 ? (['GET', 'POST'] as const) : (['POST', 'GET'] as const);
      return guardrailsOf({ ...RULE, after: { methods, within: i === 0 ? '1h' : '2h' } }).rules[0]?.after?.text;
    });
    expect(texts[0]).toBe(texts[1]);
    expect(guardrailsOf({ ...RULE, after: { scopes: ['GET'], within: '1h' } }).rules[0]?.after?.text).not.toBe(
      texts[0],
    );
  });

  test('a condition that fails selects the call: on an unread body, or a missing member', () => {
    const when = 'request.body.from == "outside"';
    const given = facts({ guardrails: guardrailsOf({ ...RULE, after: { when, within: '1h' } }) });
    const from = (body: object | UnreadBody) => ask({ call: call({ method: 'POST', body: body as never }) });
    expect(of(from({ from: 'inside' }), given)[1]).toBe(0);
    for (const body of [{ from: 'outside' }, {}, new UnreadBody('long')]) expect(of(from(body), given)[1]).toBe(1);
  });

  test('for a child, conditions on its parent select the call, too', () => {
    const given = facts({
      agent: agent({ name: 'child', parent: parent() }),
      guardrails: guardrailsOf({ ...RULE, after: { when: 'agent.name == "parent"', within: '1h' } }),
    });
    expect(of(READ, given)[1]).toBe(1);
  });
});

describe('the decision on a rule that looks back', () => {
  const given = facts({ guardrails: guardrailsOf(RULE) });

  test('allows without an earlier call, and denies with one, naming it', () => {
    expect(decide(given, having(WRITE), NOW)).toMatchObject({ kind: 'allow', matched: [{ source: 'policy' }] });
    expect(decide(given, having(WRITE, BEFORE), NOW)).toMatchObject({
      kind: 'deny',
      reason: 'denied_by_guardrail',
      detail: `guardrail quiet denies this call: ${describeEarlier(BEFORE)}`,
      matched: [{ source: 'guardrail', name: 'quiet', effect: 'deny', after: '0193' }],
    });
  });

  test('ignores earlier calls of another rule or another source', () => {
    for (const other of [
      { ...BEFORE, place: 1 },
      { ...BEFORE, source: 'policy' as const },
    ])
      expect(decide(given, having(WRITE, other), NOW).kind).toBe('allow');
  });

  test('is conditional when earlier calls were not looked up, as for a question without a call', () => {
    expect(decide(given, ask({ scope: 'crm:contacts.write' }), NOW)).toMatchObject({
      kind: 'allow',
      conditional: true,
    });
    expect(decide(given, WRITE, NOW)).toMatchObject({ kind: 'allow', conditional: true });
  });

  test('equals that of the same rule without `after` when there is an earlier call, and of no rule when there is none', () => {
    fc.assert(
      fc.property(guardRules, policyRules, covered, fc.nat(8), (guards, rules, asked, which) => {
        const all: [Earlier['source'], number][] = [
          ...guards.map((_, i) => ['guardrail', i] as [Earlier['source'], number]),
          ...rules.flatMap(({ effect }, i) =>
            effect === 'allow' ? [] : [['policy', i] as [Earlier['source'], number]],
          ),
        ];
        const [source, place] = all[which % Math.max(1, all.length)] ?? ['guardrail', 0];
        if (all.length === 0) return;
        const after = { methods: ['GET'], within: '1h' } as const;
        const changed = (list: readonly RuleSource[], of: Earlier['source'], to: (rule: RuleSource) => RuleSource[]) =>
          list.flatMap((rule, i) => {
            // Unnamed rules are named by their position, which changes here.
            const named = { ...rule, name: rule.name ?? `n${i}` };
            return of === source && i === place ? to(named) : [named];
          });
        const world = (to: (rule: RuleSource) => RuleSource[]) =>
          facts({
            guardrails: guardrailsOf(...changed(guards, 'guardrail', to)),
            policy: policyOf(...changed(rules, 'policy', to)),
          });
        const looking = world((rule) => [{ ...rule, after }]);
        const plain = ({ kind, reason, matched }: ReturnType<typeof decide>) => ({
          kind,
          reason,
          matched: matched.map(({ after: _, ...one }) => one),
        });
        const asks = having(asked);
        expect(plain(decide(looking, having(asked, { ...BEFORE, source, place }), NOW))).toEqual(
          plain(
            decide(
              world((rule) => [rule]),
              asks,
              NOW,
            ),
          ),
        );
        expect(plain(decide(looking, asks, NOW))).toEqual(
          plain(
            decide(
              world(() => []),
              asks,
              NOW,
            ),
          ),
        );
      }),
    );
  });
});

test('a rule that looks back is described in words', () => {
  const after = {
    methods: ['GET'],
    endpoints: ['/issues/**'],
    scopes: ['crm:*.read'],
    platforms: ['crm'],
    when: 'request.query.a == "1"',
    within: '8h',
  } as const;
  expect(describeRule({ effect: 'deny', methods: ['POST'], after })).toBe(
    'POST is denied for 8h after GET /issues/** with crm:*.read on crm if request.query.a == "1"',
  );
  expect(describeAfter({ scopes: ['a'], within: '1d' })).toBe('for 1d after a call with a');
  for (const one of [after, { scopes: ['a'], within: '1d' }, { when: 'true', platforms: ['b'], within: '5m' }] as const)
    expect(afterOf(one as never)).toBe(describeAfter(one));
});
