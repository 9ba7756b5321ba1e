/** Standing approvals through the public API: created, used, counted, revoked, recorded. */
import { beforeAll, describe, expect, test } from 'vitest';
import { receiptOf } from '../../broker/audit/receipt.ts';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { listGrants, putGrant } from '../../broker/store/agents.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { putPolicy } from '../../broker/store/governed-versions.ts';
import {
  endStandingApproval,
  findStandingTerms,
  standsFor,
  useStandingApproval,
} from '../../broker/store/standing-approvals.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf, verifyReceipt } from '../world/evidence.ts';
import { startReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { DEMO_RULES, givenWorld, shared } from '../world/world.ts';

const FREE = { 'POST /items': ['/text', { member: '/amount', at_most: true }] };
const HOUR = { for_seconds: 3600 };
const AT_ONCE = sized(18, 32);

describe.each(STORES)(`standing approvals on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { free: FREE } }));

  const call = (data: Record<string, unknown> = { to: 'ann', text: 'hello', amount: 50 }, more: object = {}) => ({
    platform: 'demo',
    endpoint: '/items',
    method: 'POST',
    scope: 'demo:write',
    data,
    ...more,
  });
  const FIRST = { to: 'ann', text: 'hello', amount: 50 };
  const approve = (id: string, standing: unknown) => organisation.approve(id, { standing });
  const make = async (by: TestAgent, standing: object = {}, request = call()): Promise<string> => {
    const decided = await approve(await by.hold(request), { count: 3, ...HOUR, free: [], ...standing });
    expect(decided.status, decided.text).toBe(200);
    expect(decided.body.standing_approval).toEqual(expect.any(String));
    return decided.body.standing_approval;
  };
  const status = async (by: TestAgent, data?: Record<string, unknown>, more?: object) =>
    (await by.act(call(data, more))).status;
  const listed = async (path = '') =>
    (await organisation.ask('GET', `/owner/standing-approvals${path}`)).body.standing_approvals;

  test('lets the given number of similar calls pass, then calls are held again', async () => {
    const agent = await organisation.agent();
    const id = await make(agent, { count: 2, free: [{ member: '/text' }] });
    const before = world.upstream.seen.length;
    const first = await agent.act(call({ ...FIRST, text: 'other' }));
    expect([first.status, first.body._meta.standing_approval]).toEqual([200, { id, left: 1 }]);
    const { row, payload } = await evidenceOf(world, agent, first.body._meta.audit_id);
    expect(JSON.parse(row.flags!)).toMatchObject({ standing_approval: { id, left: 1 } });
    expect(payload).toMatchObject({ standing_approval: { id, left: 1 }, approval: null, reason: 'approved' });
    expect(row.receipt_format).toBe(5);
    const audit = async (audit: string) => (await organisation.ask('GET', `/owner/audit?text=${audit}`)).body.rows[0];
    expect((await audit(row.id)).standing).toEqual({
      approval_id: expect.any(String),
      decided_by: organisation.owner.id,
      decided_by_email: organisation.owner.email,
      how: 'api',
      created_at: expect.stringMatching(/Z$/),
    });
    const other = await expectStatus(202, agent.act(call({ ...FIRST, to: 'evil' })));
    expect((await audit(other.body.approval_id)).standing).toBeNull();
    expect(await status(agent, { ...FIRST, text: 'third' })).toBe(200);
    expect(world.upstream.seen.length).toBe(before + 2);
    expect(await status(agent, { ...FIRST, text: 'fourth' })).toBe(202);
    expect(await listed()).not.toContainEqual(expect.objectContaining({ id }));
    expect(await listed('?status=all')).toContainEqual(
      expect.objectContaining({ id, left: 0, status: 'ended', ended_because: 'used' }),
    );
  });

  test('can be revoked, in force from the next call and recorded', async () => {
    const agent = await organisation.agent();
    const id = await make(agent);
    expect(await status(agent)).toBe(200);
    const ended = await organisation.ask('DELETE', `/owner/standing-approvals/${id}`);
    expect([ended.status, ended.body.status, ended.body.ended_because, ended.body.left]).toEqual([
      200,
      'ended',
      'owner',
      2,
    ]);
    expect(await status(agent)).toBe(202);
    expect((await organisation.ask('DELETE', `/owner/standing-approvals/${id}`)).status).toBe(409);
    const { body } = await organisation.ask('GET', '/owner/audit?reason=standing_approval_revoked');
    const [row] = body.rows.filter(
      (one: { flags: { change?: { standing_approval: string } } }) => one.flags.change?.standing_approval === id,
    );
    expect(row.flags.change).toMatchObject({ standing_approval: id, left: 2, by: organisation.owner.id });
  });

  test('expires at its end', async () => {
    const agent = await organisation.agent();
    await make(agent, { for_seconds: 60 });
    expect(await status(agent)).toBe(200);
    world.clock.skewMs = 61_000;
    expect(await status(agent)).toBe(202);
  });

  test('a use is refused when it ended or expired after the call was decided', async () => {
    const agent = await organisation.agent();
    const id = await make(agent, { count: 5, for_seconds: 60 });
    const ref = { organisation_id: organisation.id, id };
    const { expires_at } = (await findStandingTerms(world.db, organisation.id, id))!;
    const use = async (now: number) => (await useStandingApproval(world.db, ref, now))?.uses_left;
    const stands = (now: number) => standsFor(world.db, ref, now);
    expect([await use(expires_at), await stands(expires_at)]).toEqual([undefined, false]);
    expect([await use(expires_at - 1), await stands(expires_at - 1)]).toEqual([4, true]);
    expect(await endStandingApproval(world.db, ref, organisation.owner.id, expires_at)).toBe(false);
    expect(await endStandingApproval(world.db, ref, organisation.owner.id, expires_at - 1)).toBe(true);
    expect([await use(expires_at - 1), await stands(expires_at - 1)]).toEqual([undefined, false]);
  });

  test('ends with its agent and with its grant', async () => {
    const [one, two] = [await organisation.agent(), await organisation.agent()];
    const [a, b] = [await make(one), await make(two)];
    await organisation.ask('POST', `/owner/agents/${one.agentId}/revoke`, {});
    expect((await organisation.ask('DELETE', `/owner/agents/${two.agentId}/grants/demo`)).status).toBe(200);
    const all = await listed('?status=all&limit=200');
    const because = (id: string) => all.find((each: { id: string }) => each.id === id)?.ended_because;
    expect([because(a), because(b)]).toEqual(['agent', 'grant']);
  });

  test('for a session it applies to that session only', async () => {
    const agent = await organisation.agent();
    const inSession = (session: string) =>
      agent.act(call(), { authorization: `Bearer ${agent.token({ session_id: session })}` });
    const held = await expectStatus(202, inSession('one'));
    await expectStatus(200, approve(held.body.approval_id, { count: 5, session: true }));
    expect([(await inSession('one')).status, (await inSession('two')).status, await status(agent)]).toEqual([
      200, 202, 202,
    ]);
  });

  test('the decision names it in its row and receipt, and the store holds no value of the call in plain text', async () => {
    const agent = await organisation.agent();
    const secretive = 'kaleidoscope-4711';
    const held = await agent.hold(call({ ...FIRST, text: secretive }));
    const decided = await approve(held, { count: 7, ...HOUR, free: [{ member: '/text' }] });
    const { audit_ids, standing_approval: id } = decided.body;
    const row = await findAuditRow(world.db, organisation.id, audit_ids.decided);
    const { payload } = await verifyReceipt(world, receiptOf(row!)!);
    expect(payload.standing_approval).toMatchObject({ id, count: 7, session: false, free: [{ member: '/text' }] });
    expect(payload.standing_approval.terms_hash).toMatch(/^[0-9a-f]{64}$/);
    expect(placesOf(secretive, await everythingStored(world.environment))).toEqual([]);
  });

  test('terms that were moved to another row of the store are not used', async () => {
    const agent = await organisation.agent();
    const id = await make(agent);
    const row = await world.db
      .selectFrom('standing_approvals')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    await organisation.ask('DELETE', `/owner/standing-approvals/${id}`);
    await world.db
      .insertInto('standing_approvals')
      .values({ ...row, id: uuidv7(Date.now()) })
      .execute();
    expect(await status(agent)).toBe(202);
  });

  test('a repeated Idempotency-Key does not use it again', async () => {
    const agent = await organisation.agent();
    const id = await make(agent, { count: 2 });
    const keyed = () => agent.act(call(), { 'idempotency-key': 'k1' });
    expect([(await keyed()).status, (await keyed()).status]).toEqual([200, 200]);
    expect((await listed()).find((one: { id: string }) => one.id === id).left).toBe(1);
  });

  test(`${AT_ONCE} concurrent calls use exactly the given number`, async () => {
    const agent = await organisation.agent();
    await make(agent, { count: 10 });
    const before = world.upstream.seen.length;
    const answers = await Promise.all(Array.from({ length: AT_ONCE }, () => agent.act(call())));
    const codes = answers.map((one) => one.status).sort();
    expect(codes).toEqual([...Array(10).fill(200), ...Array(AT_ONCE - 10).fill(202)]);
    expect(world.upstream.seen.length - before).toBe(10);
    const left = answers.flatMap((one) => one.body._meta?.standing_approval?.left ?? []);
    expect(left.sort((a: number, b: number) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  describe.runIf(store === 'postgres')('over two replicas', () => {
    let there: (agent: TestAgent) => TestAgent;
    beforeAll(async () => {
      const replica = await startReplica(world);
      there = replica.asks;
      return () => replica.process.signal('SIGKILL');
    });

    test(`${AT_ONCE} concurrent calls use exactly the given number, and a revocation here is in force there immediately`, async () => {
      const agent = await organisation.agent();
      const id = await make(agent, { count: 12 });
      const before = world.upstream.seen.length;
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, (_, i) => (i % 2 ? there(agent) : agent).act(call())),
      );
      expect(answers.filter((one) => one.status === 200).length).toBe(12);
      expect(answers.filter((one) => one.status === 202).length).toBe(AT_ONCE - 12);
      expect(world.upstream.seen.length - before).toBe(12);
      expect((await listed('?status=all&limit=200')).find((one: { id: string }) => one.id === id).left).toBe(0);
      const other = await organisation.agent();
      const second = await make(other);
      expect((await there(other).act(call())).status).toBe(200);
      await organisation.ask('DELETE', `/owner/standing-approvals/${second}`);
      expect((await there(other).act(call())).status).toBe(202);
    });
  });

  // The remaining tests do not depend on the store's SQL.
  if (!ONE_STORE.includes(store)) return;

  test('the replay of the call that it was created with does not use it', async () => {
    const agent = await organisation.agent();
    const id = await make(agent, { count: 1 });
    expect((await listed()).find((one: { id: string }) => one.id === id)).toMatchObject({ left: 1, count: 1 });
    expect(await status(agent)).toBe(200);
    expect(await status(agent)).toBe(202);
  });

  test('an amount without at_most may be at most that of the call', async () => {
    const agent = await organisation.agent();
    await make(agent, { free: [{ member: '/amount' }] });
    expect(await status(agent, { ...FIRST, amount: 49 })).toBe(200);
    expect(await status(agent, { ...FIRST, amount: 51 })).toBe(202);
    const [found] = await listed(`?agent=${agent.agentId}`);
    expect(found.free).toEqual([{ member: '/amount', at_most: 50 }]);
  });

  test('the offer lists the members that may differ, with the call’s values, and the list shows the terms', async () => {
    const agent = await organisation.agent();
    const held = await agent.hold(call());
    const { body } = await organisation.ask('GET', `/owner/approvals/${held}`);
    expect(body.standing).toMatchObject({
      possible: true,
      why: null,
      members: [
        { member: '/text', value: 'hello', at_most: null },
        { member: '/amount', value: 50, at_most: 50 },
      ],
    });
    const until = new Date(Date.now() + 3_600_000).toISOString();
    await approve(held, { count: 20, until, free: [{ member: '/text' }, { member: '/amount', at_most: 20 }] });
    const [found] = await listed(`?agent=${agent.agentId}`);
    expect(found).toMatchObject({
      status: 'in_force',
      count: 20,
      left: 20,
      free: [
        { member: '/text', at_most: null },
        { member: '/amount', at_most: 20 },
      ],
      approval_id: held,
      how: 'api',
      decided_by: organisation.owner.id,
      decided_by_email: organisation.owner.email,
    });
    expect(found.sentence).toBe(
      `The next 20 calls of this agent like this one are made without asking, until ${until.slice(0, 16).replace('T', ' ')} UTC. Everything in them is as in this one but text (anything), amount (at most 20).`,
    );
    expect(await status(agent, { ...FIRST, amount: 20 })).toBe(200);
    expect(await status(agent, { ...FIRST, amount: 21 })).toBe(202);
    expect(await status(agent, FIRST)).toBe(202);
  });

  test.each([
    [{ count: 1, free: [] }, /write one of until, for_seconds and session/],
    [{ count: 1, ...HOUR, session: true }, /write one of until/],
    [{ count: 1, session: true }, /the agent named no session/],
    [{ count: 1, until: '2020-01-01T00:00:00Z' }, /this time has passed/],
    [{ count: 1, until: '2099-01-01T00:00:00Z' }, /within 30 days/],
    [{ count: 1, for_seconds: 31 * 86_400 }, /for_seconds/],
    [{ count: 0, ...HOUR }, /count/],
    [{ count: 1_001, ...HOUR }, /count/],
    [{ count: 1, ...HOUR, free: [{ member: '/to' }] }, /"\/to" may not differ; what may is \/text, \/amount/],
    [{ count: 1, ...HOUR, free: [{ member: '/amount', at_most: 51 }] }, /"\/amount" may be at most 50/],
    [{ count: 1, ...HOUR, free: [{ member: '/text', at_most: 5 }] }, /is no number/],
    [{ count: 1, ...HOUR, free: [{ member: '/text' }, { member: '/text' }] }, /is listed twice/],
  ])('%j is refused, and nothing is decided', async (standing, says) => {
    const agent = await organisation.agent();
    const held = await agent.hold(call());
    const refused = await approve(held, standing);
    expect([refused.status, refused.body.error], refused.text).toEqual([400, 'invalid_request']);
    expect(JSON.stringify(refused.body.problems ?? '') + refused.body.detail).toMatch(says);
    expect((await organisation.ask('GET', `/owner/approvals/${held}`)).body.status).toBe('pending');
    expect(await status(agent)).toBe(202);
  });

  test('is not offered for a call beyond a limit of a rule, each of which needs an approval of its own', async () => {
    const limit = { most: 5, of: '10', per: 'day' };
    const rule = { name: 'daily', effect: 'require_approval', methods: ['POST'], limit };
    const agent = await organisation.agent({ rules: [{ effect: 'allow' }, rule] });
    const held = await agent.hold(call());
    const why = 'The rule "daily" has a limit: each call beyond it needs an approval of its own.';
    const { standing } = (await organisation.ask('GET', `/owner/approvals/${held}`)).body;
    expect(standing).toMatchObject({ possible: false, why });
    const refused = await approve(held, { count: 1, ...HOUR });
    expect([refused.status, refused.body.detail]).toEqual([400, why]);
  });

  test('an agent has at most 100 in force', async () => {
    const agent = await organisation.agent();
    const id = await make(agent);
    const one = await world.db
      .selectFrom('standing_approvals')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const others = Array.from({ length: 99 }, () => ({ ...one, id: uuidv7(Date.now()) }));
    await world.db.insertInto('standing_approvals').values(others).execute();
    const held = await agent.hold(call({ ...FIRST, to: 'bob' }));
    const refused = await approve(held, { count: 1, ...HOUR, free: [] });
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringMatching(/^This agent has 100 /)]);
    await organisation.ask('DELETE', `/owner/standing-approvals/${id}`);
    expect((await approve(held, { count: 1, ...HOUR, free: [] })).status).toBe(200);
  });

  test('a denial creates none', async () => {
    const held = await (await organisation.agent()).hold(call());
    const standing = { count: 1, ...HOUR };
    expect((await organisation.deny(held, { standing })).status).toBe(400);
  });

  test('another organisation can neither list nor revoke it, and a viewer cannot revoke it', async () => {
    const agent = await organisation.agent();
    const id = await make(agent);
    const other = await world.organisation();
    expect((await other.ask('GET', '/owner/standing-approvals')).body.standing_approvals).toEqual([]);
    expect((await other.ask('DELETE', `/owner/standing-approvals/${id}`)).status).toBe(404);
    const viewer = await organisation.addOwner('viewer');
    expect((await organisation.ask('DELETE', `/owner/standing-approvals/${id}`, undefined, viewer)).status).toBe(403);
    expect(await status(agent)).toBe(200);
  });

  test.each([
    [
      'grant',
      async (agent: TestAgent) => {
        const [found] = await listGrants(world.db, organisation.id, agent.id);
        await putGrant(world.db, { ...found!, constraints: JSON.stringify({ recipients: ['@acme.example'] }) });
      },
    ],
    [
      'platform',
      async () => void (await organisation.platform({ manifest: { free: FREE, name: 'Other' }, secret: null })),
    ],
    ['guardrails', async () => organisation.guardrails([{ name: 'far', effect: 'deny', endpoints: ['/far'] }])],
    [
      'policy',
      async (agent: TestAgent) => {
        const { policy_id: id } = await world.db
          .selectFrom('agents')
          .select('policy_id')
          .where('id', '=', agent.id)
          .executeTakeFirstOrThrow();
        const rules = JSON.stringify([...DEMO_RULES, { effect: 'deny', endpoints: ['/far'] }]);
        await putPolicy(world.db, { organisationId: organisation.id, id: id!, name: 'changed', rules }, Date.now());
      },
    ],
    [
      'connection',
      async () => {
        const id = await organisation.connection('demo', { isDefault: false });
        for (const [is_default, one] of [
          [0, '!='],
          [1, '='],
        ] as const)
          await world.db
            .updateTable('connections')
            .set({ is_default })
            .where('organisation_id', '=', organisation.id)
            .where('id', one, id)
            .execute();
      },
    ],
  ] as const)(
    'after a change of the %s calls are held again, and a call that was held before can only be approved by itself',
    async (what, change) => {
      const agent = await organisation.agent();
      await make(agent);
      expect(await status(agent)).toBe(200);
      const held = await agent.hold(call({ ...FIRST, to: 'bob' }));
      await change(agent);
      expect(await status(agent)).toBe(202);
      const why = expect.stringMatching(new RegExp(`^The ${what} changed since this call was held`, 'i'));
      const { body } = await organisation.ask('GET', `/owner/approvals/${held}`);
      expect(body.standing).toMatchObject({ possible: false, why });
      const refused = await approve(held, { count: 1, ...HOUR });
      expect([refused.status, refused.body.detail], refused.text).toEqual([400, why]);
      expect((await organisation.approve(held)).status).toBe(200);
    },
  );

  test('a guardrail without remember holds every call, and the offer says so', async () => {
    const strict = await world.demoOrganisation({
      manifest: { free: FREE },
      guardrails: [{ name: 'always', effect: 'require_approval', endpoints: ['/items'] }],
    });
    const agent = await strict.agent();
    const { body } = await agent.act(call());
    const shown = await strict.ask('GET', `/owner/approvals/${body.approval_id}`);
    expect(shown.body.standing).toMatchObject({
      possible: false,
      why: expect.stringContaining('"always" asks for every call'),
    });
    const refused = await strict.approve(body.approval_id, {
      standing: { count: 1, ...HOUR },
    });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('asks for every call')]);
    await strict.guardrails([{ name: 'always', effect: 'require_approval', endpoints: ['/items'], remember: true }]);
    const again = await agent.act(call());
    const made = await strict.approve(again.body.approval_id, {
      standing: { count: 1, ...HOUR },
    });
    expect(made.status, made.text).toBe(200);
    expect((await agent.act(call())).status).toBe(200);
  });

  test('is refused with a session alone where the organisation requires user verification', async () => {
    const careful = await world.demoOrganisation({ manifest: { free: FREE } });
    const agent = await careful.agent();
    expect((await careful.ask('POST', '/owner/organisation', { require_user_verification: true })).status).toBe(200);
    const { body } = await agent.act(call());
    const refused = await careful.approve(body.approval_id, {
      standing: { count: 1, ...HOUR },
    });
    expect([refused.body.error, refused.text]).toEqual(['verification_failed', expect.stringContaining('passkey')]);
    expect((await careful.approve(body.approval_id)).status).toBe(200);
  });

  test('a call that no platform answered still uses it', async () => {
    const agent = await organisation.agent();
    await make(agent, { count: 1 });
    world.upstream.answer = (request) => request.socket.destroy();
    expect(await status(agent)).toBe(502);
    world.upstream.answer = undefined;
    expect(await status(agent)).toBe(202);
  });
});
