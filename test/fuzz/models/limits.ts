/**
 * Limits of rules: never more calls pass in a period than the limit allows, however many are concurrent, from an agent, its child and another
 * agent, while the rule changes, calls beyond it are approved, and periods begin.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { expectStatus, type TestAgent } from '../../world/agent.ts';
import { childOf } from '../../world/child.ts';
import { scaledTimeout } from '../../world/runner/test-timeouts.ts';
import { ALLOW_ALL, type Organisation, type World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { sequences, step } from '../steps.ts';

type Limit = { most: number; per: 'hour' | 'day'; of?: string; together?: true };
type Rule = { effect: 'deny' | 'require_approval'; limit: Limit };
type Who = 'one' | 'child' | 'other';
type Held = { id: string; who: Who; amount: number; at: number };
type Model = { rule: Rule | undefined; used: Map<string, number>; held: Held[]; effects: number; childUntil: number };
type Real = { organisation: Organisation; agents: Record<Who, TestAgent> };

const CALL = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
const AMOUNT = 'request.body.amount';
const LENGTH_MS = { hour: 3_600_000, day: 86_400_000 };
const CHILD_S = 24 * 3600;
/** Shorter than the lifetime of held calls. */
const LIVES_MS = 23 * LENGTH_MS.hour;

export function limits(world: World, count: Count): Fuzzed {
  const now = () => Date.now() + world.clock.skewMs;
  const begin = async () => {
    world.clock.skewMs = 0;
    world.upstream.seen.length = 0;
    const organisation = await world.demoOrganisation();
    const one = await organisation.agent({ rules: ALLOW_ALL });
    const child = await childOf(world, organisation, one, { ttl_seconds: CHILD_S });
    const other = await organisation.agent({ rules: ALLOW_ALL });
    for (const agent of [one, other]) agent.clock = now;
    const childUntil = now() + (CHILD_S - 60) * 1000;
    const model: Model = { rule: undefined, used: new Map(), held: [], effects: 0, childUntil };
    return { model, real: { organisation, agents: { one, child, other } } };
  };
  const keyOf = ({ per, of = 'calls', together }: Limit, who: Who) =>
    [per, of, together ? 'all' : who === 'other' ? 'other' : 'one', Math.floor(now() / LENGTH_MS[per])].join();
  const take = (model: Model, limit: Limit, who: Who, amount: number) => {
    const key = keyOf(limit, who);
    model.used.set(key, (model.used.get(key) ?? 0) + (limit.of ? amount : 1));
  };
  const roomFor = ({ used }: Readonly<Model>, limit: Limit, who: Who, amount: number) => {
    const left = limit.most - (used.get(keyOf(limit, who)) ?? 0);
    const asked = limit.of ? amount : 1;
    return asked === 0 ? Number.POSITIVE_INFINITY : Math.max(0, Math.floor(left / asked));
  };

  const isAlive = ({ childUntil }: Readonly<Model>, who: Who) => who !== 'child' || now() < childUntil;
  const isDecidable = (model: Readonly<Model>, { who, at }: Held) => isAlive(model, who) && at > now() - LIVES_MS;

  const someRule = fc.record({
    effect: fc.constantFrom('deny', 'require_approval'),
    limit: fc.record(
      {
        most: fc.integer({ min: 1, max: 12 }),
        per: fc.constantFrom('hour', 'day'),
        of: fc.constant(AMOUNT),
        together: fc.constant(true),
      },
      { requiredKeys: ['most', 'per'] },
    ),
  }) as fc.Arbitrary<Rule>;
  const change = fc.option(someRule, { nil: undefined, freq: 8 }).map((rule) =>
    step<Model, Real>(`the rule ${JSON.stringify(rule)}`, async (model, { organisation }) => {
      await organisation.guardrails(rule ? [{ name: 'l', methods: ['POST'], ...rule }] : []);
      model.rule = rule;
    }),
  );
  const burst = fc
    .record({
      who: fc.constantFrom<Who>('one', 'child', 'other'),
      calls: fc.integer({ min: 1, max: 6 }),
      amount: fc.integer({ min: 0, max: 4 }),
    })
    .map(({ who, calls, amount }) =>
      step<Model, Real>(
        `${who} calls ${calls} times concurrently, ${amount} each`,
        async (model, { agents }) => {
          const { rule } = model;
          const room = rule ? Math.min(calls, roomFor(model, rule.limit, who, amount)) : calls;
          const answers = await Promise.all(
            Array.from({ length: calls }, () => agents[who].act({ ...CALL, data: { amount } })),
          );
          const made = answers.filter(({ status }) => status === 200);
          const beyond = answers.filter(({ status }) => status === (rule?.effect === 'deny' ? 403 : 202));
          expect([made.length, beyond.length], answers.map(({ text }) => text).join()).toEqual([room, calls - room]);
          if (room > 0 && room < calls) count('more concurrent calls than the limit allows');
          for (const { body } of beyond) {
            expect(body.limit).toMatchObject({ rule: 'l', most: rule!.limit.most });
            if (rule?.effect === 'require_approval') model.held.push({ id: body.approval_id, who, amount, at: now() });
          }
          if (rule) for (let i = 0; i < room; i++) take(model, rule.limit, who, amount);
          model.effects += room;
        },
        (model) => isAlive(model, who),
      ),
    );
  const approve = fc.constant(
    step<Model, Real>(
      'approve what was held first',
      async (model, { organisation, agents }) => {
        const next = model.held.findIndex((one) => isDecidable(model, one));
        const [{ id, who, amount }] = model.held.splice(next, 1) as [Held];
        const { rule } = model;
        const isMade = rule?.effect !== 'deny' || roomFor(model, rule.limit, who, amount) >= 1;
        await expectStatus(200, organisation.approve(id));
        const end = async () => {
          const { executed_at, execution_error } = (await agents[who].get(`/v1/approvals/${id}`)).body;
          return executed_at === null ? (execution_error ?? 'under way') : 'made';
        };
        const options = { timeout: scaledTimeout(10_000) };
        if (isMade) await expect.poll(end, options).toBe('made');
        else await expect.poll(end, options).toContain('denied_by_guardrail');
        if (!isMade) return count('approved, but denied by the limit');
        if (rule) take(model, rule.limit, who, amount);
        model.effects++;
      },
      (model) => model.held.some((one) => isDecidable(model, one)),
    ),
  );
  const wait = fc.constantFrom(20 * 60_000, 7 * LENGTH_MS.hour).map((ms) =>
    step<Model, Real>(`wait ${ms / 60_000} minutes`, async () => {
      world.clock.skewMs += ms;
    }),
  );

  const property = sequences<Model, Real>([change, change, burst, burst, burst, burst, approve, approve, wait], {
    begin,
    after: async ({ effects }) => expect(world.upstream.seen.length).toBe(effects),
    end: async () => {},
  });
  return { property, reaches: ['more concurrent calls than the limit allows'] };
}
