/**
 * Rules with a look-back: calls are denied or held from the first matching past call on, made by the agent, its child or its parent, until its time
 * is over, while the rule changes and held calls are approved. Calls of other agents do not count.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { expectStatus, type TestAgent } from '../../world/agent.ts';
import { childOf } from '../../world/child.ts';
import { scaledTimeout } from '../../world/runner/test-timeouts.ts';
import { ALLOW_ALL, type Organisation, type World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { sequences, step } from '../steps.ts';

type Kind = 'a' | 'b';
type Who = 'one' | 'child' | 'other';
type Rule = { effect: 'deny' | 'require_approval'; kinds: readonly Kind[]; within: '30m' | '6h' };
type Held = { id: string; who: Who; at: number };
/** `noted`: by rule kinds and family, when the family last made a matching call while a rule looked back at it. */
type Model = { rule: Rule | undefined; noted: Map<string, number>; held: Held[]; effects: number };
type Real = { organisation: Organisation; agents: Record<Who, TestAgent> };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const WITHIN_MS = { '30m': 30 * MINUTE_MS, '6h': 6 * HOUR_MS };
const CHILD_S = 24 * 3600;
/** Shorter than the lifetimes of held calls and of the child. */
const LIVES_MS = 22 * HOUR_MS;

export function lookBacks(world: World, count: Count): Fuzzed {
  const now = () => Date.now() + world.clock.skewMs;
  let began = 0;
  const begin = async () => {
    world.clock.skewMs = 0;
    world.upstream.seen.length = 0;
    const organisation = await world.demoOrganisation();
    const one = await organisation.agent({ rules: ALLOW_ALL });
    const child = await childOf(world, organisation, one, { ttl_seconds: CHILD_S });
    const other = await organisation.agent({ rules: ALLOW_ALL });
    for (const agent of [one, other]) agent.clock = now;
    began = now();
    const model: Model = { rule: undefined, noted: new Map(), held: [], effects: 0 };
    return { model, real: { organisation, agents: { one, child, other } } };
  };
  const keyOf = ({ kinds }: Rule, who: Who) => `${kinds.join('')} ${who === 'other' ? 'other' : 'one'}`;
  const applies = ({ rule, noted }: Readonly<Model>, who: Who): boolean => {
    const at = rule && noted.get(keyOf(rule, who));
    return rule !== undefined && at !== undefined && now() < at + WITHIN_MS[rule.within] + MINUTE_MS;
  };
  const isAlive = (who: Who) => who !== 'child' || now() < began + LIVES_MS;
  const isDecidable = ({ who, at }: Held) => isAlive(who) && at > now() - LIVES_MS;

  const someRule: fc.Arbitrary<Rule> = fc.record({
    effect: fc.constantFrom('deny', 'require_approval'),
    kinds: fc.constantFrom<readonly Kind[]>(['a'], ['b'], ['a', 'b']),
    within: fc.constantFrom('30m', '6h'),
  });
  const change = fc.option(someRule, { nil: undefined, freq: 8 }).map((rule) =>
    step<Model, Real>(`the rule ${JSON.stringify(rule)}`, async (model, { organisation }) => {
      const after = rule && { endpoints: rule.kinds.map((kind) => `/items/${kind}`), within: rule.within };
      await organisation.guardrails(rule ? [{ name: 'l', methods: ['POST'], effect: rule.effect, after }] : []);
      model.rule = rule;
    }),
  );
  const anybody = fc.constantFrom<Who>('one', 'child', 'other');
  const read = fc
    .record({ who: anybody, kind: fc.constantFrom<Kind>('a', 'b'), calls: fc.integer({ min: 1, max: 3 }) })
    .map(({ who, kind, calls }) =>
      step<Model, Real>(
        `${who} reads ${kind} ${calls} times concurrently`,
        async (model, { agents }) => {
          const { rule, noted } = model;
          const at = now();
          const action = { platform: 'demo', endpoint: `/items/${kind}`, method: 'GET', scope: 'demo:read' };
          const answers = await Promise.all(Array.from({ length: calls }, () => agents[who].act(action)));
          expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
          model.effects += calls;
          if (!rule?.kinds.includes(kind)) return;
          const key = keyOf(rule, who);
          if (at - (noted.get(key) ?? 0) >= MINUTE_MS) noted.set(key, at);
        },
        () => isAlive(who),
      ),
    );
  const write = fc.record({ who: anybody, calls: fc.integer({ min: 1, max: 4 }) }).map(({ who, calls }) =>
    step<Model, Real>(
      `${who} writes ${calls} times concurrently`,
      async (model, { agents }) => {
        const { rule } = model;
        const stopped = applies(model, who);
        const action = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} };
        const answers = await Promise.all(Array.from({ length: calls }, () => agents[who].act(action)));
        const status = stopped ? (rule?.effect === 'deny' ? 403 : 202) : 200;
        expect(
          answers.map((one) => one.status),
          answers[0]?.text,
        ).toEqual(answers.map(() => status));
        if (status === 200) model.effects += calls;
        else count(status === 403 ? 'refused after another call' : 'held after another call');
        if (status === 202) model.held.push(...answers.map(({ body }) => ({ id: body.approval_id, who, at: now() })));
      },
      () => isAlive(who),
    ),
  );
  const approve = fc.constant(
    step<Model, Real>(
      'approve what was held first',
      async (model, { organisation, agents }) => {
        const [{ id, who }] = model.held.splice(model.held.findIndex(isDecidable), 1) as [Held];
        const isMade = !(model.rule?.effect === 'deny' && applies(model, who));
        await expectStatus(200, organisation.approve(id));
        const end = async () => {
          const { executed_at, execution_error } = (await agents[who].get(`/v1/approvals/${id}`)).body;
          return executed_at === null ? (execution_error ?? 'under way') : 'made';
        };
        await expect.poll(end, { timeout: scaledTimeout(10_000) }).toContain(isMade ? 'made' : 'denied_by_guardrail');
        if (isMade) model.effects++;
      },
      (model) => model.held.some(isDecidable),
    ),
  );
  const wait = fc.constantFrom(20 * MINUTE_MS, 7 * HOUR_MS).map((ms) =>
    step<Model, Real>(`wait ${ms / MINUTE_MS} minutes`, async () => {
      world.clock.skewMs += ms;
    }),
  );

  const property = sequences<Model, Real>([change, change, read, read, read, write, write, write, approve, wait], {
    begin,
    after: async ({ effects }) => expect(world.upstream.seen.length).toBe(effects),
    end: async () => {},
  });
  return { property, reaches: ['refused after another call', 'held after another call'] };
}
