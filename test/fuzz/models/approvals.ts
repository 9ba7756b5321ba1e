/**
 * Held calls (specification, "Approval (queued action)"): at most one effect, none without an approval by as many people as the rules require, none
 * against the agent's permissions at that time, final statuses, and a receipt for each decision.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { OwnerTable } from '../../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus } from '../../world/agent.ts';
import type { World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { type Step, sequences, step } from '../steps.ts';
import { expectOnRecord } from './on-record.ts';
import {
  approversOf,
  type Holder,
  newHolder,
  READ,
  type Rights,
  setPolicy,
  stepsOnRights,
  verdictOf,
  WRITE,
} from './rights.ts';

const LIVES_S = 600;

const PEOPLE = ['owner', 'approver'] as const;
type Person = (typeof PEOPLE)[number];
type Real = Holder & { people: Record<Person, OwnerTable> };
/** A decision by one of the people. */
type Decision = { verb: 'approve' | 'deny'; by: Person };

type Held = {
  id: string;
  item: string;
  endsAt: number;
  /** The stored status; a pending one expires by time. */
  word: 'pending' | 'approved' | 'denied';
  /** How many people have to approve the request, and who has. */
  needed: number;
  given: ReadonlySet<Person>;
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
type ModelStep = Step<Model, Real>;

const statusAt = ({ word, endsAt }: Held, now: number) => (word === 'pending' && endsAt <= now ? 'expired' : word);

export function approvals(world: World, count: Count): Fuzzed {
  const begin = async () => {
    const { rights, holder } = await newHolder(world);
    await expectStatus(200, holder.organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: LIVES_S }));
    const model: Model = { rights, held: [], effects: [], rows: [], calls: 0 };
    const people = { owner: holder.organisation.owner, approver: await holder.organisation.addOwner('approver') };
    return { model, real: { ...holder, people } };
  };

  const call = (scope: string) =>
    step<Model, Real>(`call(${scope})`, async (model, { agent }) => {
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
          needed: approversOf(model.rights, scope),
          given: new Set(),
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

  /** A call that two people have to approve: rules drawn at random hardly ever hold one that both then approve. */
  const callForTwo = step<Model, Real>('call that two approve', async (model, real) => {
    await setPolicy(model.rights, real, 'two_approvers');
    await call(WRITE).run(model, real);
  });

  /** A call that one person may approve until the rules need two: it is approved, and not made. */
  const callBeforeRuleForTwo = step<Model, Real>('call before two have to approve', async (model, real) => {
    await setPolicy(model.rights, real, 'require_approval');
    await call(WRITE).run(model, real);
    await setPolicy(model.rights, real, 'two_approvers');
  });

  /** Models the replay of an approved call: made, or refused by the agent's current permissions, or for lack of approvals. */
  const replay = (model: Model, held: Held, now: number) => {
    const scope = held.item === 'read' ? READ : WRITE;
    const verdict = verdictOf(model.rights, scope, now);
    const why = Array.isArray(verdict)
      ? verdict
      : approversOf(model.rights, scope) > held.given.size
        ? ['more_approvers_needed']
        : [];
    if (why.length > 0) {
      const isByTooFew = why[0] === 'more_approvers_needed';
      held.why = why;
      model.rows.push(isByTooFew ? 'blocked' : 'denied');
      count(isByTooFew ? 'approved by too few' : 'approved and not executed');
    } else {
      held.isMade = true;
      model.effects.push(held.item);
      model.rows.push('allowed');
      count(held.needed > 1 ? 'approved by two and executed' : 'approved and executed');
    }
  };

  /** Models a decision on a call that is still pending in time: the status afterwards, and the approvals given. */
  const after = ({ word, given, needed }: Held, { verb, by }: Decision): Pick<Held, 'word' | 'given'> => {
    if (verb === 'deny') return { word: 'denied', given };
    const all = new Set([...given, by]);
    return { word: all.size >= needed ? 'approved' : word, given: all };
  };
  const hashOf = async ({ organisation }: Real, { id }: Held): Promise<string> =>
    (await organisation.ask('GET', `/owner/approvals/${id}`)).body.request_hash;
  const decide = async (real: Real, held: Held, { verb, by }: Decision): Promise<Answer> => {
    const shown = held.isCorrected ? { request_hash: await hashOf(real, held) } : {};
    return await real.organisation.ask('POST', `/owner/approvals/${held.id}/${verb}`, shown, real.people[by]);
  };
  const decisions = fc.record<Decision>({
    verb: fc.constantFrom('approve', 'approve', 'approve', 'deny'),
    by: fc.constantFrom(...PEOPLE),
  });
  const one = (name: string, which: number, run: (model: Model, real: Real, held: Held) => Promise<void>): ModelStep =>
    step(
      `${name} ${which}`,
      async (model, real) => await run(model, real, model.held.at(-1 - (which % model.held.length)) as Held),
      (model) => model.held.length > 0,
    );

  /** `seconds`: to wait before. */
  const decideAfter = (seconds: number) =>
    fc.tuple(decisions, fc.nat(3)).map(([decision, which]) =>
      one(`after ${seconds} s ${decision.verb} by the ${decision.by}`, which, async (model, real, held) => {
        world.clock.skewMs += seconds * 1000;
        const answer = await decide(real, held, decision);
        const before = statusAt(held, real.agent.clock());
        if (before === 'pending') {
          expect(answer.status, answer.text).toBe(200);
          Object.assign(held, after(held, decision));
          expect(answer.body.status, answer.text).toBe(held.word);
          if (held.word === 'approved') replay(model, held, real.agent.clock());
          if (held.word === 'pending') count('approved in part');
        } else if (before === 'expired') {
          count('too late');
          expect([answer.status, answer.body.error], answer.text).toEqual([410, 'approval_expired']);
        } else {
          count('decided before');
          expect([answer.status, answer.body.error], answer.text).toEqual([409, 'already_decided']);
        }
      }),
    );
  /** Two concurrent decisions, by two people or by a double click: they have the effect of one after the other, in either order. */
  const concurrently = fc.tuple(decisions, decisions, fc.nat(3)).map(([first, second, which]) =>
    one(`${first.verb} by the ${first.by} and ${second.verb} by the ${second.by}`, which, async (model, real, held) => {
      const answers = await Promise.all([decide(real, held, first), decide(real, held, second)]);
      const statuses = answers.map(({ status }) => status);
      const texts = answers.map(({ text }) => text).join();
      const before = statusAt(held, real.agent.clock());
      if (before !== 'pending') {
        expect(statuses, texts).toEqual(before === 'expired' ? [410, 410] : [409, 409]);
        return;
      }
      const orders = [true, false].map((isFirst) => {
        const [one, other] = isFirst ? [first, second] : [second, first];
        const half = after(held, one);
        const isOver = half.word !== 'pending';
        const expected = [200, isOver ? 409 : 200];
        const end = isOver ? half : after({ ...held, ...half }, other);
        return { expected: isFirst ? expected : expected.toReversed(), end };
      });
      const order = orders.find(({ expected }) => expected.join() === statuses.join());
      expect(order, `${statuses}: ${texts}`).toBeDefined();
      count('decided concurrently');
      Object.assign(held, order?.end);
      if (held.word === 'approved') replay(model, held, real.agent.clock());
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
      held.needed = approversOf(model.rights, WRITE);
      held.given = new Set();
      count('corrected');
      const old = await organisation.approve(held.id, {
        request_hash: asked.request_hash,
      });
      expect([old.status, old.body.error], old.text).toEqual([409, 'request_changed']);
    }),
  );
  const denyAll = fc.constant(
    step<Model, Real>('deny all of the agent', async (model, { organisation, agent }) => {
      const waiting = model.held.filter((held) => statusAt(held, agent.clock()) === 'pending');
      const answer = await organisation.ask('POST', '/owner/approvals/deny', { agent: agent.agentId });
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.denied.toSorted()).toEqual(waiting.map(({ id }) => id).toSorted());
      for (const held of waiting) held.word = 'denied';
    }),
  );
  const restart = step<Model, Real>('restart the broker', async () => {
    count('restarted');
    await world.restart();
  });

  /** Reads the approval as the agent, or as the owner where the agent is stopped. */
  const expectSeen = async (model: Model, { agent, organisation }: Real, held: Held): Promise<void> => {
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

  const property = sequences<Model, Real>(
    [
      ...[READ, WRITE, WRITE, WRITE].map((scope) => fc.constant(call(scope))),
      fc.constant(callForTwo),
      fc.constant(callForTwo),
      fc.constant(callBeforeRuleForTwo),
      decideAfter(0),
      decideAfter(0),
      // Makes expiry likely: waiting steps alone hardly ever last that long before a decision.
      decideAfter(LIVES_S),
      concurrently,
      correct,
      denyAll,
      // Rare, because a restart takes as long as all other steps.
      fc.nat(9).map((n) => (n === 0 ? restart : call(WRITE))),
      ...stepsOnRights<Model, Real>(),
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
      'approved by two and executed',
      'approved by too few',
      'approved in part',
      'decided before',
      'decided concurrently',
      'too late',
    ],
  };
}
