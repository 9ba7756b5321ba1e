/**
 * Held calls (specification, "Approval (queued action)"): at most one effect, none without an approval, none against the agent's permissions at
 * that time, final statuses, and a receipt for each decision.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { type Answer, expectStatus } from '../../world/agent.ts';
import type { World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { type Step, sequences, step } from '../steps.ts';
import { expectOnRecord } from './on-record.ts';
import { type Holder, newHolder, READ, type Rights, stepsOnRights, verdictOf, WRITE } from './rights.ts';

const LIVES_S = 600;

type Held = {
  id: string;
  item: string;
  endsAt: number;
  /** The stored status; a pending one expires by time. */
  word: 'pending' | 'approved' | 'denied';
  isMade: boolean;
  isCorrected: boolean;
  /** Possible reasons why the replay was not made. */
  why: string[];
};
type Model = {
  rights: Rights;
  held: Held[];
  /** Requests that the platform must have received, in any order. */
  effects: string[];
  /** Results of the audit rows of calls. */
  rows: string[];
  calls: number;
};
type ModelStep = Step<Model, Holder>;

const statusAt = ({ word, endsAt }: Held, now: number) => (word === 'pending' && endsAt <= now ? 'expired' : word);

export function approvals(world: World, count: Count): Fuzzed {
  const begin = async () => {
    const { rights, holder } = await newHolder(world);
    await expectStatus(200, holder.organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: LIVES_S }));
    const model: Model = { rights, held: [], effects: [], rows: [], calls: 0 };
    return { model, real: holder };
  };

  const call = (scope: string) =>
    step<Model, Holder>(`call(${scope})`, async (model, { agent }) => {
      const item = `i${model.calls++}`;
      const request = scope === READ ? { method: 'GET' } : { method: 'POST', data: { item } };
      const answer = await agent.act({ platform: 'demo', endpoint: '/items', scope, ...request });
      const verdict = verdictOf(model.rights, scope, agent.clock());
      if (verdict === 'held') {
        expect(answer.status, answer.text).toBe(202);
        expect(answer.body.status).toBe('pending_approval');
        const { approval_id: id } = answer.body;
        const endsAt = agent.clock() + LIVES_S * 1000;
        model.held.push({
          id,
          item: scope === READ ? 'read' : item,
          endsAt,
          word: 'pending',
          isMade: false,
          isCorrected: false,
          why: [],
        });
        model.rows.push('held');
      } else if (verdict === 'made') {
        expect(answer.status, answer.text).toBe(200);
        model.effects.push(scope === READ ? 'read' : item);
        model.rows.push('allowed');
      } else {
        expect(answer.status, answer.text).toBe(403);
        expect(verdict).toContain(answer.body.reason);
        model.rows.push('denied');
      }
    });

  /** Models the replay of an approved call: made, or refused by the agent's current permissions. */
  const replay = (model: Model, held: Held, now: number) => {
    held.word = 'approved';
    const scope = held.item === 'read' ? READ : WRITE;
    const verdict = verdictOf(model.rights, scope, now);
    if (Array.isArray(verdict)) {
      held.why = verdict;
      model.rows.push('denied');
      count('approved and not executed');
    } else {
      held.isMade = true;
      model.effects.push(held.item);
      model.rows.push('allowed');
      count('approved and executed');
    }
  };

  const hashOf = async ({ organisation }: Holder, { id }: Held): Promise<string> =>
    (await organisation.ask('GET', `/owner/approvals/${id}`)).body.request_hash;
  const decide = async (real: Holder, held: Held, verb: string): Promise<Answer> =>
    await real.organisation.ask('POST', `/owner/approvals/${held.id}/${verb}`, {
      ...(held.isCorrected && { request_hash: await hashOf(real, held) }),
    });
  const verbs = fc.constantFrom('approve', 'approve', 'deny');
  const one = (
    name: string,
    which: number,
    run: (model: Model, real: Holder, held: Held) => Promise<void>,
  ): ModelStep =>
    step(
      `${name} ${which}`,
      async (model, real) => await run(model, real, model.held.at(-1 - (which % model.held.length)) as Held),
      (model) => model.held.length > 0,
    );

  /** `after`: seconds to wait before. */
  const decideAfter = (after: number) =>
    fc.tuple(verbs, fc.nat(3)).map(([verb, which]) =>
      one(`after ${after} s ${verb}`, which, async (model, real, held) => {
        world.clock.skewMs += after * 1000;
        const answer = await decide(real, held, verb);
        const before = statusAt(held, real.agent.clock());
        if (before === 'pending') {
          expect(answer.status, answer.text).toBe(200);
          if (verb === 'approve') replay(model, held, real.agent.clock());
          else held.word = 'denied';
        } else if (before === 'expired') {
          count('too late');
          expect([answer.status, answer.body.error], answer.text).toEqual([410, 'approval_expired']);
        } else {
          count('decided before');
          expect([answer.status, answer.body.error], answer.text).toEqual([409, 'already_decided']);
        }
      }),
    );
  /** Two concurrent decisions, by two owners or by a double click: one of them wins. */
  const atOnce = fc.tuple(verbs, verbs, fc.nat(3)).map(([first, second, which]) =>
    one(`${first} and ${second} at once`, which, async (model, real, held) => {
      const answers = await Promise.all([first, second].map((verb) => decide(real, held, verb)));
      const won = answers.findIndex(({ status }) => status === 200);
      const before = statusAt(held, real.agent.clock());
      const others = before === 'pending' ? answers.toSpliced(won, 1) : answers;
      for (const { status, text } of others) expect(status, text).toBe(before === 'expired' ? 410 : 409);
      if (before !== 'pending') return;
      count('decided concurrently');
      expect(won).toBeGreaterThanOrEqual(0);
      if ([first, second][won] === 'approve') replay(model, held, real.agent.clock());
      else held.word = 'denied';
    }),
  );
  /** Changes the item of a held call. */
  const correct = fc.nat(3).map((which) =>
    one('correct', which, async (model, real, held) => {
      const { organisation, agent } = real;
      const item = `c${model.calls++}`;
      const asked = { request_hash: await hashOf(real, held), data: { item } };
      const answer = await organisation.ask('POST', `/owner/approvals/${held.id}/correct`, asked);
      const before = statusAt(held, agent.clock());
      const error =
        before === 'expired'
          ? 'approval_expired'
          : before !== 'pending'
            ? 'already_decided'
            : held.item === 'read'
              ? 'invalid_request'
              : Array.isArray(verdictOf(model.rights, WRITE, agent.clock()))
                ? 'conflict'
                : undefined;
      // A read has no body to correct; for an agent without permissions that is the answer, too.
      if (error === 'invalid_request') expect(['invalid_request', 'conflict']).toContain(answer.body.error);
      else expect(answer.body.error, answer.text).toBe(error);
      if (error !== undefined) return;
      held.item = item;
      held.isCorrected = true;
      count('corrected');
      const old = await organisation.ask('POST', `/owner/approvals/${held.id}/approve`, {
        request_hash: asked.request_hash,
      });
      expect([old.status, old.body.error], old.text).toEqual([409, 'request_changed']);
    }),
  );
  const denyAll = fc.constant(
    step<Model, Holder>('deny all of the agent', async (model, { organisation, agent }) => {
      const waiting = model.held.filter((held) => statusAt(held, agent.clock()) === 'pending');
      const answer = await organisation.ask('POST', '/owner/approvals/deny', { agent: agent.agentId });
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.denied.toSorted()).toEqual(waiting.map(({ id }) => id).toSorted());
      for (const held of waiting) held.word = 'denied';
    }),
  );
  const restart = step<Model, Holder>('restart the broker', async () => {
    count('restarted');
    await world.restart();
  });

  /** Reads the approval as the agent, or as the owner where the agent is stopped. */
  const expectSeen = async (model: Model, { agent, organisation }: Holder, held: Held): Promise<void> => {
    const path = model.rights.status === 'active' ? 'v1' : 'owner';
    const answer = await (path === 'v1'
      ? agent.get(`/v1/approvals/${held.id}`)
      : organisation.ask('GET', `/owner/approvals/${held.id}`));
    expect(answer.status, answer.text).toBe(200);
    const { status, executed_at, execution_error, result } = answer.body;
    expect(status, answer.text).toBe(statusAt(held, agent.clock()));
    expect(executed_at !== null, answer.text).toBe(held.isMade);
    const isBlocked = held.word === 'approved' && !held.isMade;
    // The agent gets the result of a call that was made only while it has the access for it; rules do not matter any more.
    const verdict = verdictOf(model.rights, held.item === 'read' ? READ : WRITE, agent.clock());
    const hasAccess = !Array.isArray(verdict) || verdict.every((reason) => reason.startsWith('denied_by_'));
    const isWithheld = held.isMade && path === 'v1' && !hasAccess;
    if (isBlocked) expect(held.why, answer.text).toContain(/^\w+/.exec(execution_error)?.[0]);
    else if (isWithheld) expect(execution_error, answer.text).toMatch(/^result_withheld: /);
    else expect(execution_error ?? null, answer.text).toBeNull();
    if (isWithheld) count('result withheld');
    if (path === 'v1') expect(result?.status, answer.text).toBe(held.isMade && !isWithheld ? 200 : undefined);
  };

  const property = sequences<Model, Holder>(
    [
      ...[READ, WRITE, WRITE, WRITE].map((scope) => fc.constant(call(scope))),
      decideAfter(0),
      decideAfter(0),
      // Makes expiry likely: waiting steps alone hardly ever last that long before a decision.
      decideAfter(LIVES_S),
      atOnce,
      correct,
      denyAll,
      // Rare, because a restart takes as long as all other steps.
      fc.nat(9).map((n) => (n === 0 ? restart : call(WRITE))),
      ...stepsOnRights<Model, Holder>(),
    ],
    {
      begin,
      after: async ({ effects, rights, held }, { agent }) => {
        // The pending calls of a revoked agent expire.
        if (rights.status === 'revoked') for (const one of held) one.endsAt = Math.min(one.endsAt, agent.clock());
        const seen = world.upstream.seen.map(({ method, body }) => (method === 'GET' ? 'read' : JSON.parse(body).item));
        expect(seen.toSorted()).toEqual(effects.toSorted());
      },
      end: async (model, real) => {
        for (const held of model.held) await expectSeen(model, real, held);
        count('sequences');
        await expectOnRecord(real, model.rows);
      },
    },
  );
  return {
    property,
    reaches: [
      'corrected',
      'approved and executed',
      'approved and not executed',
      'decided before',
      'decided concurrently',
      'too late',
    ],
  };
}
