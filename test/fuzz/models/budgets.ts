/**
 * Counters: a standing approval allows at most its number of calls, however many are concurrent, until it expires, is revoked or its basis
 * changes; and an agent may query its identity 30 times a minute (specification, Limits).
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { expectStatus, type TestAgent } from '../../world/agent.ts';
import type { Organisation, World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { sequences, step } from '../steps.ts';

const ME_A_MINUTE = 30;
const LIVES_S = 300;

type Model = {
  standing: { id: string; left: number; endsAt: number; isGood: boolean } | undefined;
  isSuspended: boolean;
  version: number;
  effects: number;
  asked: number;
};
type Real = { organisation: Organisation; agent: TestAgent };

const CALL = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { to: 'ann' } };
/** The order of methods differs in each version. */
const rules = (version: number) => [
  { effect: 'require_approval', methods: ['POST'] },
  { effect: 'allow', methods: version % 2 === 0 ? ['GET', 'PATCH'] : ['PATCH', 'GET'] },
];

/** @param world a world with the limits of the specification */
export function budgets(world: World, count: Count): Fuzzed {
  const begin = async () => {
    world.clock.skewMs = 0;
    world.upstream.seen.length = 0;
    const organisation = await world.demoOrganisation();
    const policy = await organisation.policy(rules(0), 'p');
    const agent = await organisation.agent({ policy });
    const model: Model = { standing: undefined, isSuspended: false, version: 0, effects: 0, asked: 0 };
    return { model, real: { organisation, agent } };
  };
  const leftOf = ({ standing }: Readonly<Model>, now: number) =>
    standing?.isGood && standing.endsAt > now ? standing.left : 0;

  const stand = fc.integer({ min: 1, max: 5 }).map((times) =>
    step<Model, Real>(
      `approve a call and the next ${times}`,
      async (model, { organisation, agent }) => {
        const held = await agent.act(CALL);
        if (leftOf(model, agent.clock()) > 0) {
          expect(held.status, held.text).toBe(200);
          model.effects++;
          if (model.standing) model.standing.left--;
          return;
        }
        expect(held.status, held.text).toBe(202);
        const answer = await organisation.approve(held.body.approval_id, {
          standing: { count: times, for_seconds: LIVES_S, free: [] },
        });
        expect(answer.status, answer.text).toBe(200);
        model.effects++;
        const endsAt = agent.clock() + LIVES_S * 1000;
        model.standing = { id: answer.body.standing_approval, left: times, endsAt, isGood: true };
      },
      ({ isSuspended }) => !isSuspended,
    ),
  );
  const burst = fc.integer({ min: 1, max: 6 }).map((calls) =>
    step<Model, Real>(`call ${calls} times at once`, async (model, { agent }) => {
      const answers = await Promise.all(Array.from({ length: calls }, () => agent.act(CALL)));
      const made = answers.filter(({ status }) => status === 200).length;
      const passes = model.isSuspended ? 0 : Math.min(calls, leftOf(model, agent.clock()));
      const others = answers.filter(({ status }) => status === (model.isSuspended ? 403 : 202)).length;
      expect([made, others], answers.map(({ text }) => text).join()).toEqual([passes, calls - passes]);
      if (passes > 0 && passes < calls) count('more concurrent calls than remained');
      if (model.standing) model.standing.left -= passes;
      model.effects += passes;
    }),
  );
  const other = fc.constant(
    step<Model, Real>('another call', async ({ isSuspended }, { agent }) => {
      const answer = await agent.act({ ...CALL, data: { to: 'bob' } });
      expect(answer.status, answer.text).toBe(isSuspended ? 403 : 202);
    }),
  );
  const revoke = fc.constant(
    step<Model, Real>(
      'revoke what stands',
      async (model, { organisation }) => {
        const answer = await organisation.ask('DELETE', `/owner/standing-approvals/${model.standing?.id}`);
        expect(answer.status, answer.text).toBeLessThan(500);
        if (model.standing) model.standing.isGood = false;
      },
      ({ standing }) => standing !== undefined,
    ),
  );
  const policy = fc.constant(
    step<Model, Real>('a new version of the policy', async (model, { organisation }) => {
      await expectStatus(200, organisation.ask('POST', '/owner/policies/p', { rules: rules(++model.version) }));
      if (model.standing) model.standing.isGood = false;
    }),
  );
  const move = fc.constantFrom('suspend', 'resume', 'resume').map((verb) =>
    step<Model, Real>(
      verb,
      async (model, { organisation, agent }) => {
        await expectStatus(200, organisation.ask('POST', `/owner/agents/${agent.id}/${verb}`, {}));
        model.isSuspended = verb === 'suspend';
      },
      ({ isSuspended }) => isSuspended !== (verb === 'suspend'),
    ),
  );
  const wait = fc.constantFrom(100, 250).map((seconds) =>
    step<Model, Real>(`wait ${seconds} s`, async () => {
      world.clock.skewMs += seconds * 1000;
    }),
  );
  /** The minute of this limit is real time, which no sequence lasts. */
  const me = fc.integer({ min: 5, max: 24 }).map((times) =>
    step<Model, Real>(`ask ${times} times who it is`, async (model, { agent }) => {
      const answers = await Promise.all(Array.from({ length: times }, () => agent.get('/v1/agents/me')));
      const answered = answers.filter(({ status }) => status === 200).length;
      expect(answered).toBe(Math.min(times, ME_A_MINUTE - model.asked));
      for (const { status, headers } of answers) {
        if (status === 200) continue;
        count('over the limit');
        expect(status).toBe(429);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
      }
      model.asked += answered;
    }),
  );

  const property = sequences<Model, Real>([stand, stand, burst, burst, burst, other, revoke, policy, move, wait, me], {
    begin,
    after: async ({ effects }) => expect(world.upstream.seen.length).toBe(effects),
    end: async ({ standing }, { organisation, agent }) => {
      if (standing === undefined) return;
      const { body, text } = await organisation.ask(
        'GET',
        `/owner/standing-approvals?status=all&agent=${agent.agentId}`,
      );
      const found = body.standing_approvals.find(({ id }: { id: string }) => id === standing.id);
      expect(found?.left, text).toBe(standing.left);
    },
  });
  return { property, reaches: ['more concurrent calls than remained', 'over the limit'] };
}
