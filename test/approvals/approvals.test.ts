import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { decideHeld, decideHeldIf } from '../../broker/approvals/decide.ts';
import { denyWaiting } from '../../broker/approvals/deny-waiting.ts';
import { expireHeld } from '../../broker/approvals/expiry.ts';
import { sealRequest } from '../../broker/approvals/sealed.ts';
import { AuthorNotAllowed } from '../../broker/audit/author-role.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { generateMasterKey } from '../../broker/crypto/master-key.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { putOwner } from '../../broker/store/organisations.ts';
import { isRowFault } from '../../broker/store/row-fault.ts';
import { rewrapAll } from '../../broker/vault.ts';
import { expectStatus, send } from '../world/agent.ts';
import { evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { exchange } from '../world/raw.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { CANARY, givenWorld, type Organisation, shared, startWorld, type World } from '../world/world.ts';

const WRITE = {
  platform: 'demo',
  endpoint: '/items?notify=1',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'x', to: 'ann@acme.example' },
  headers: { 'X-Kept': 'kept' },
  reason: 'because',
};

/** Owners who decide one call concurrently. */
const RIVALS = sized(20, 50);

describe.each(STORES)(`held calls on %s${postgresNote}`, (store) => {
  const onOne = testOnOne(store);
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { recipients: { 'POST /items': ['/to'] } } }));
  const agent = shared(() => organisation.agent());

  async function hold(by = agent, request: Record<string, unknown> = WRITE): Promise<string> {
    const answer = await expectStatus(
      202,
      withoutCalls(world, () => by.act(request)),
    );
    return answer.body.approval_id;
  }
  const approve = (id: string, body: unknown = {}, by?: Parameters<Organisation['ask']>[3]) =>
    organisation.approve(id, body, by);
  const deny = (id: string, body: unknown = {}) => organisation.deny(id, body);

  test('an approved call is made once, unchanged, and the agent reads the answer', async () => {
    const id = await hold();
    const waiting = await expectStatus(200, agent.get(`/v1/approvals/${id}`));
    expect(waiting.body).toEqual({
      approval_id: id,
      approval_url: `${world.running.baseUrl}/approve/${id}`,
      sentence: 'send a POST to /items with 3 fields',
      status: 'pending',
      created_at: expect.any(String),
      expires_at: expect.any(String),
      executed_at: null,
      audit_id: expect.any(String),
    });
    const before = world.upstream.seen.length;
    const decided = await expectStatus(200, approve(id, { note: 'Go on.' }));
    expect(decided.body).toMatchObject({ status: 'approved', how: 'api', decided_by: organisation.owner.id });
    const { decided_by_email } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    expect(decided_by_email).toBe(organisation.owner.email);
    expect(world.upstream.seen.length).toBe(before + 1);
    const { method, target, headers, body } = world.upstream.seen.at(-1)!;
    expect([method, target, JSON.parse(body)]).toEqual(['POST', '/v1/items?notify=1', WRITE.data]);
    expect(headers).toMatchObject({ 'x-kept': 'kept', authorization: `Bearer ${CANARY}` });
    expect(waiting.body.audit_id).toBe(decided.body.audit_ids.held);
    const made = await agent.get(`/v1/approvals/${id}`);
    expect(made.body).toMatchObject({ status: 'approved', note: 'Go on.', executed_at: expect.any(String) });
    expect(made.body.result).toMatchObject({ status: 200, data: { method: 'POST' } });
    expect(made.body.execution_error).toBeUndefined();
    const { row, payload } = await evidenceOf(world, agent, made.body.audit_id);
    expect(row).toMatchObject({ result: 'allowed', reason: 'approved', upstream_status: 200, agent_reason: 'because' });
    const provenance = {
      approval_id: id,
      decided_by: organisation.owner.id,
      decided_at: decided.body.decided_at,
      how: 'api',
      request_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      hold_audit_id: decided.body.audit_ids.held,
    };
    expect(payload.approval).toEqual(provenance);
    const word = await evidenceOf(world, agent, decided.body.audit_ids.decided);
    expect(word.payload).toMatchObject({ kind: 'event', reason: 'approval_approved', approval: provenance });
  });

  onOne('the answer to an approved call is not given to an agent that could not make it any more', async () => {
    const by = await organisation.agent();
    const id = await hold(by);
    await approve(id);
    const read = async () => (await by.get(`/v1/approvals/${id}`)).body;
    const made = await read();
    expect(made.result.status).toBe(200);
    const grants = world.db.updateTable('grants').where('agent_id', '=', by.id);
    const { scopes } = await world.db
      .selectFrom('grants')
      .selectAll()
      .where('agent_id', '=', by.id)
      .executeTakeFirstOrThrow();
    const platforms = world.db.updateTable('platforms').where('organisation_id', '=', organisation.id);
    const losses: [string, () => Promise<unknown>, () => Promise<unknown>, RegExp][] = [
      [
        'suspended',
        () => organisation.ask('POST', `/owner/agents/${by.agentId}/suspend`, {}),
        () => organisation.ask('POST', `/owner/agents/${by.agentId}/resume`, {}),
        /suspended/,
      ],
      [
        'without the scope',
        () => grants.set({ scopes: '["demo:read"]' }).execute(),
        () => grants.set({ scopes }).execute(),
        /does not include this scope/,
      ],
      [
        'on a platform that is suspended',
        () => platforms.set({ suspended: 1 }).execute(),
        () => platforms.set({ suspended: 0 }).execute(),
        /suspended/,
      ],
    ];
    for (const [what, lose, giveBack, why] of losses) {
      await lose();
      const { result, execution_error: error, status, executed_at } = await read();
      expect([result, status, executed_at], what).toEqual([undefined, 'approved', made.executed_at]);
      expect(error, what).toMatch(/^result_withheld: The call was made\. .*Do not repeat it\.$/);
      expect(error, what).toMatch(why);
      await giveBack();
      expect(await read(), what).toEqual(made);
    }
  });

  test('R9 a denied call is never made; the agent reads the note', async () => {
    const id = await hold();
    const denied = await withoutCalls(world, () => deny(id, { note: 'Not today.' }));
    expect([denied.status, denied.body.status]).toEqual([200, 'denied']);
    const { body } = await agent.get(`/v1/approvals/${id}`);
    expect(body).toMatchObject({ status: 'denied', note: 'Not today.', executed_at: null });
    expectEnvelope(await withoutCalls(world, () => approve(id)), 409, 'already_decided');
    const word = await evidenceOf(world, agent, denied.body.audit_ids.decided);
    expect(word.row).toMatchObject({ kind: 'event', reason: 'approval_denied', detail: 'Not today.' });
  });

  onOne('an owner sees the exact request, the agent, why it was held, and the time left', async () => {
    const id = await hold();
    const { body } = await expectStatus(200, organisation.ask('GET', `/owner/approvals/${id}`));
    expect(body).toMatchObject({
      approval_id: id,
      status: 'pending',
      agent: { agent_id: agent.agentId, name: 'triage', status: 'active' },
      platform: 'demo',
      connection: { label: 'demo-main' },
      method: 'POST',
      path: '/items',
      scope: 'demo:write',
      reason: 'because',
      held_because: {
        reason: 'approval_required_by_policy',
        rules: [{ source: 'policy', effect: 'require_approval' }],
      },
      request: {
        method: 'POST',
        endpoint: '/items?notify=1',
        body: WRITE.data,
        headers: { 'x-kept': 'kept' },
        recipients: ['ann@acme.example'],
      },
    });
    expect(body.expires_in_seconds).toBeGreaterThan(DAY_MS / 1000 - 60);
    expect(JSON.stringify(body)).not.toContain(CANARY);
  });

  test('the list has pages, and a filter by current status', async () => {
    const own = await world.organisation();
    await own.platform();
    const asker = await own.agent();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      world.clock.skewMs = i * 1000;
      ids.unshift(await hold(asker, { ...WRITE, data: { i } }));
    }
    await own.deny(ids[0]);
    const list = async (query: string) => {
      const { status, body } = await own.ask('GET', `/owner/approvals?${query}`);
      expect(status, JSON.stringify(body)).toBe(200);
      return [body.approvals.map((one: { approval_id: string }) => one.approval_id), body.next];
    };
    expect(await list('')).toEqual([ids, null]);
    expect(await list('limit=2')).toEqual([ids.slice(0, 2), ids[1]]);
    expect(await list(`limit=2&before=${ids[1]}`)).toEqual([ids.slice(2, 4), ids[3]]);
    expect(await list('status=denied')).toEqual([[ids[0]], null]);
    // The calls that expire first come first, page by page.
    const waiting = ids.slice(1).reverse();
    expect(await list('status=pending')).toEqual([waiting, null]);
    expect(await list('status=pending&limit=3')).toEqual([waiting.slice(0, 3), waiting[2]]);
    expect(await list(`status=pending&limit=3&before=${waiting[2]}`)).toEqual([waiting.slice(3), null]);
    const other = await own.agent();
    world.clock.skewMs = 5_000;
    const others = await hold(other, WRITE);
    expect(await list(`agent=${other.agentId}`)).toEqual([[others], null]);
    expect(await list(`agent=${asker.id}&status=pending`)).toEqual([waiting, null]);
    expect(await list('platform=demo&scope=demo:write&limit=1')).toEqual([[others], others]);
    expect(await list('platform=other')).toEqual([[], null]);
    expect(await list('scope=demo:read')).toEqual([[], null]);
    await own.deny(others);
    world.clock.skewMs = DAY_MS + 60_000;
    expect(await list('status=pending')).toEqual([[], null]);
    expect(await list('status=expired')).toEqual([ids.slice(1), null]);
    for (const wrong of ['limit=0', 'limit=x', 'status=maybe', 'before=1', 'agent=x', 'agnet=agt_x'])
      expectEnvelope(await own.ask('GET', `/owner/approvals?${wrong}`), 400, 'invalid_request');
  });

  test('a bulk denial denies all pending calls of one agent, each with its receipt, and no others', async () => {
    const own = await world.organisation();
    await own.platform();
    const [flooding, quiet] = [await own.agent(), await own.agent()];
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) ids.push(await hold(flooding, { ...WRITE, data: { i } }));
    const kept = await hold(quiet, WRITE);
    const viewer = await own.addOwner('viewer');
    const deny = (body: unknown, by?: typeof viewer) => own.ask('POST', '/owner/approvals/deny', body, by);
    expect((await deny({ agent: flooding.agentId }, viewer)).status).toBe(403);
    for (const wrong of [{}, { agent: 'x' }, { agent: flooding.agentId, all: true }])
      expectEnvelope(await deny(wrong), 400, 'invalid_request');
    expect((await deny({ agent: flooding.agentId, platform: 'other' })).body).toEqual({ denied: [], remaining: false });
    const { body } = await deny({ agent: flooding.agentId, note: 'Stop.' });
    expect(body).toEqual({ denied: expect.arrayContaining(ids), remaining: false });
    expect(body.denied).toHaveLength(3);
    for (const id of ids)
      expect((await flooding.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'denied', note: 'Stop.' });
    expect((await quiet.get(`/v1/approvals/${kept}`)).body.status).toBe('pending');
    const rows = await world.db.selectFrom('audit_rows').selectAll().where('approval_id', 'in', ids).execute();
    expect(rows.filter(({ kind, receipt }) => kind === 'event' && receipt !== null)).toHaveLength(3);
  });

  onOne(
    'a bulk denial by an owner who loses the role meanwhile denies no further calls, and says that some remain',
    async () => {
      const agent = await organisation.agent();
      for (let i = 0; i < 3; i++) await hold(agent, { ...WRITE, data: { i } });
      const owner = await organisation.addOwner('approver');
      const { services, broker } = world.running;
      const { db } = broker.store;
      const denied = () =>
        db
          .selectFrom('approvals')
          .select('id')
          .where('agent_id', '=', agent.id)
          .where('status', '=', 'denied')
          .execute();
      const demoting = db.withPlugin({
        transformQuery: ({ node }) => node,
        transformResult: async ({ result }) => {
          if ((await denied()).length > 0) await putOwner(db, { ...owner, role: 'viewer' });
          return result;
        },
      });
      const raced = { ...services, broker: { ...broker, store: { ...broker.store, db: demoting } } };
      const by = { owner, how: 'api', correlationId: uuidv4() } as const;
      const done = await denyWaiting(raced, by, { agent: agent.id }, undefined);
      expect(done).toEqual({ denied: (await denied()).map(({ id }) => id), remaining: true });
      expect(done.denied).toHaveLength(1);
      // Nothing was denied: an error says so.
      await expect(denyWaiting(services, by, { agent: agent.id }, undefined)).rejects.toThrow(AuthorNotAllowed);
      expect(await denied()).toHaveLength(1);
    },
  );

  onOne(
    'AP-23 another agent’s id, another organisation’s and an unknown one get the same answer; a malformed id is a 400',
    async () => {
      const id = await hold();
      const other = await organisation.agent();
      const foreign = await world.organisation();
      await foreign.platform();
      const stranger = await foreign.agent();
      const guess = uuidv4();
      const { detail } = (await other.get(`/v1/approvals/${guess}`)).body;
      for (const [by, which] of [
        [other, id],
        [stranger, id],
        [agent, guess],
      ] as const) {
        const answer = await by.get(`/v1/approvals/${which}`);
        expectEnvelope(answer, 404, 'not_found');
        expect(answer.body.detail).toBe(detail);
      }
      for (const wrong of ['1', 'x'.repeat(36), `${id}0`])
        expectEnvelope(await agent.get(`/v1/approvals/${wrong}`), 400, 'invalid_id');
      for (const verb of ['approve', 'deny'])
        expectEnvelope(await foreign.ask('POST', `/owner/approvals/${id}/${verb}`, {}), 404, 'not_found');
      expectEnvelope(await foreign.ask('GET', `/owner/approvals/${id}`), 404, 'not_found');
      expect((await foreign.ask('GET', '/owner/approvals')).body.approvals).toEqual([]);
      for (const which of [guess, 'x']) expectEnvelope(await approve(which), 404, 'not_found');
      expect((await agent.get(`/v1/approvals/${id.toUpperCase()}`)).status).toBe(200);
    },
  );

  onOne('AP-25 an approver decides, a viewer can only read, and an agent can do neither', async () => {
    const id = await hold();
    const viewer = await organisation.addOwner('viewer');
    expect((await organisation.ask('GET', `/owner/approvals/${id}`, undefined, viewer)).status).toBe(200);
    expectEnvelope(await withoutCalls(world, () => approve(id, {}, viewer)), 403, 'forbidden');
    const headers = { 'content-type': 'application/json' };
    const own = await withoutCalls(world, () =>
      agent.request('POST', `/owner/approvals/${id}/approve`, { body: '{}', headers }),
    );
    expectEnvelope(own, 401, 'invalid_token');
    expect((await approve(id, {}, await organisation.addOwner('approver'))).body.status).toBe('approved');
  });

  test('a decision with another hash than that of the pending request decides nothing', async () => {
    const id = await hold();
    const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
    const other = (
      await organisation.ask('GET', `/owner/approvals/${await hold(agent, { ...WRITE, data: { title: 'y' } })}`)
    ).body;
    const answer = await withoutCalls(world, () => approve(id, { request_hash: other.request_hash }));
    expectEnvelope(answer, 409, 'request_changed');
    for (const wrong of [
      { request_hash: 'x' },
      { note: '' },
      { note: 'x'.repeat(1001) },
      { more: 1 },
      { note: 'a\u0000' },
    ])
      expectEnvelope(await withoutCalls(world, () => approve(id, wrong)), 400, 'invalid_request');
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    expect((await approve(id, { request_hash })).body.status).toBe('approved');
  });

  test(`AP-01 of ${RIVALS} concurrent approvals one succeeds; the platform gets one call`, async () => {
    const owners = await Promise.all(Array.from({ length: 5 }, () => organisation.addOwner('approver')));
    const id = await hold();
    const before = world.upstream.seen.length;
    const answers = await Promise.all(Array.from({ length: RIVALS }, (_, i) => approve(id, {}, owners[i % 5])));
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    for (const lost of answers.filter((one) => one !== won[0])) expectEnvelope(lost, 409, 'already_decided');
    expect(world.upstream.seen.length).toBe(before + 1);
    const rows = (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.filter(
      (row: { approval_id: string }) => row.approval_id === id,
    );
    expect(rows.map((row: { reason: string }) => row.reason).sort()).toEqual([
      'approval_approved',
      'approval_required_by_policy',
      'approved',
    ]);
  });

  test('AP-02 of a concurrent approval and denial one wins, and its decision is carried out', async () => {
    for (let round = 0; round < sized(4, 10); round++) {
      const id = await hold();
      const before = world.upstream.seen.length;
      const answers = await Promise.all([approve(id), deny(id), approve(id), deny(id)]);
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
      const { status } = answers.find((one) => one.status === 200)!.body;
      expect(world.upstream.seen.length - before).toBe(status === 'approved' ? 1 : 0);
      expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe(status);
    }
  });

  test('AP-03 after its deadline a call cannot be decided: 410, and the agent reads expired', async () => {
    const id = await hold();
    world.clock.skewMs = DAY_MS + 1_000;
    for (const late of [approve, deny])
      expectEnvelope(await withoutCalls(world, () => late(id)), 410, 'approval_expired');
    expect((await agent.get(`/v1/approvals/${id}`)).body).toMatchObject({ status: 'expired', executed_at: null });
    const { broker } = world.running;
    const stored = async () => (await findApproval(broker.store.db, organisation.id, id))!.status;
    expect(await stored()).toBe('pending');
    await expireHeld(world.running.services, broker.clock());
    expect(await stored()).toBe('expired');
    expectEnvelope(await withoutCalls(world, () => approve(id)), 410, 'approval_expired');
    world.clock.skewMs = 0;
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('expired');
  });

  test('R8 an approval races the expiry: the call is made or expired, never both', async () => {
    const { services } = world.running;
    for (let round = 0; round < sized(4, 10); round++) {
      world.clock.skewMs = 0;
      const id = await hold();
      const before = world.upstream.seen.length;
      const [answer] = await Promise.all([approve(id), expireHeld(services, Date.now() + DAY_MS + 60_000)]);
      expect([200, 410]).toContain(answer.status);
      expect(world.upstream.seen.length - before).toBe(answer.status === 200 ? 1 : 0);
      const { body } = await agent.get(`/v1/approvals/${id}`);
      expect(body.status).toBe(answer.status === 200 ? 'approved' : 'expired');
    }
  });

  test('pending actions: pending calls, and those settled within a day', async () => {
    const asker = await organisation.agent();
    const ids = [];
    for (let i = 0; i < 4; i++) ids.push(await hold(asker, { ...WRITE, data: { i } }));
    const [made, denied, waits, blocked] = ids as [string, string, string, string];
    await approve(made);
    await deny(denied);
    world.upstream.answer = (_request, response) => response.writeHead(401).end();
    await approve(blocked);
    const { body } = await expectStatus(200, asker.get('/v1/agents/me/pending-actions'));
    const common = { platform_id: 'demo', scope: 'demo:write', created_at: expect.any(String) };
    expect(body.pending).toEqual([{ approval_id: waits, ...common, expires_at: expect.any(String) }]);
    const completed = new Map(body.recently_completed.map((one: { approval_id: string }) => [one.approval_id, one]));
    expect(completed.size).toBe(3);
    expect(completed.get(made)).toEqual({
      approval_id: made,
      ...common,
      status: 'approved',
      executed_at: expect.any(String),
      result_summary: expect.stringMatching(/^status 200, application\/json, \d+ bytes$/),
      execution_error: null,
    });
    expect(completed.get(denied)).toMatchObject({ status: 'denied', executed_at: null, result_summary: null });
    expect(completed.get(blocked)).toMatchObject({
      status: 'approved',
      execution_error: expect.stringMatching(/^platform_reauth_needed: /),
    });
    const newer: string[] = [];
    for (const skewMs of [1_000, 2_000]) {
      world.clock.skewMs = skewMs;
      newer.unshift(await hold(asker, { ...WRITE, data: { skewMs } }));
    }
    const { pending } = (await asker.get('/v1/agents/me/pending-actions')).body;
    expect(pending.map((one: { approval_id: string }) => one.approval_id)).toEqual([...newer, waits]);
    for (const id of newer) await deny(id);
    world.clock.skewMs = DAY_MS + 60_000;
    const later = (await asker.get('/v1/agents/me/pending-actions')).body;
    expect(later.pending).toEqual([]);
    expect(later.recently_completed).toMatchObject([{ approval_id: waits, status: 'expired' }]);
    world.clock.skewMs = 2 * DAY_MS + 60_000;
    expect((await asker.get('/v1/agents/me/pending-actions')).body).toEqual({ pending: [], recently_completed: [] });
    expect((await (await organisation.agent()).get('/v1/agents/me/pending-actions')).body.pending).toEqual([]);
  });

  test('pending actions: newest first, including calls that expired a moment ago', async () => {
    const asker = await organisation.agent();
    const expired = await hold(asker);
    world.clock.skewMs = DAY_MS - 60_000;
    const denied = await hold(asker);
    await deny(denied);
    const waits = await hold(asker);
    world.clock.skewMs = DAY_MS + 1_000;
    const { pending, recently_completed } = (await asker.get('/v1/agents/me/pending-actions')).body;
    expect(pending).toMatchObject([{ approval_id: waits }]);
    expect(recently_completed).toMatchObject([
      { approval_id: denied, status: 'denied' },
      { approval_id: expired, status: 'expired' },
    ]);
  });

  test('pending actions list all pending calls, however many were decided since', async () => {
    const asker = await organisation.agent();
    const waits = await hold(asker);
    const { broker } = world.running;
    const now = broker.clock();
    const denied = Array.from({ length: 1_000 }, () => {
      const id = uuidv4();
      return {
        organisation_id: organisation.id,
        id,
        agent_id: asker.id,
        audit_id: uuidv4(),
        status: 'denied' as const,
        platform_id: 'demo',
        scope: 'demo:write',
        method: 'POST',
        path: '/items',
        request_hash: '0'.repeat(64),
        action: sealRequest(broker, { organisation_id: organisation.id, id }, {}),
        created_at: now + 1,
        expires_at: now + DAY_MS,
        decided_at: now + 2,
        decided_by: organisation.owner.id,
        decided_how: 'api' as const,
        decision_audit_id: uuidv4(),
      };
    });
    for (let at = 0; at < denied.length; at += 100)
      await broker.store.db
        .insertInto('approvals')
        .values(denied.slice(at, at + 100))
        .execute();
    const { body } = await asker.get('/v1/agents/me/pending-actions');
    expect(body.pending.map((one: { approval_id: string }) => one.approval_id)).toEqual([waits]);
    expect(body.recently_completed).toHaveLength(999);
  });

  onOne('a browser decides with its cookie and the CSRF header; a missing body counts as an empty one', async () => {
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const click = (id: string, headers: Record<string, string>) =>
      send(`${agent.baseUrl}/owner/approvals/${id}/approve`, {
        method: 'POST',
        headers: { cookie: `${sessionCookieName(agent.baseUrl)}=${token}`, ...headers },
      });
    const id = await hold();
    expectEnvelope(await withoutCalls(world, () => click(id, {})), 403, 'forbidden');
    const clicked = await click(id, { 'x-svc-csrf': '1' });
    expect([clicked.status, clicked.body.how], clicked.text).toEqual([200, 'console']);
    // Content-Length 0, and no length at all.
    const port = Number(new URL(agent.baseUrl).port);
    for (const framing of ['Content-Length: 0', 'Transfer-Encoding: chunked']) {
      const lines = [
        `POST /owner/approvals/${await hold()}/approve HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${token}`,
        'Content-Type: application/json',
        framing,
        'Connection: close',
      ];
      const body = framing.startsWith('Transfer') ? '0\r\n\r\n' : '';
      const answer = await exchange(port, `${lines.join('\r\n')}\r\n\r\n${body}`);
      expect([framing, answer.status]).toEqual([framing, 200]);
    }
  });

  onOne('after a master key rotation requests and results can still be opened; altered ones cannot', async () => {
    const [made, waits] = [await hold(), await hold()];
    await approve(made);
    const { vault, store: opened } = world.running.broker;
    const old = vault.masterKeys();
    const { key: current } = generateMasterKey();
    vault.useMasterKeys({ current, previous: [old.current] });
    let turns = 0;
    let next = setImmediate(function turn() {
      turns++;
      next = setImmediate(turn);
    });
    expect((await rewrapAll(opened, vault)).unreadable).toEqual([]);
    clearImmediate(next);
    expect(turns, 'others are answered meanwhile').toBeGreaterThan(2);
    vault.useMasterKeys({ current, previous: [] });
    expect((await agent.get(`/v1/approvals/${made}`)).body.result.status).toBe(200);
    expect((await organisation.ask('GET', `/owner/approvals/${waits}`)).body.request.body).toEqual(WRITE.data);
    vault.useMasterKeys({ current: old.current, previous: [current] });
    await rewrapAll(opened, vault);
    vault.useMasterKeys(old);
    const bytes = Buffer.alloc(80);
    await opened.db.updateTable('approvals').set({ result: bytes, action: bytes }).where('id', '=', made).execute();
    const { status, body } = await agent.get(`/v1/approvals/${made}`);
    expect([status, body.result, body.execution_error]).toEqual([
      200,
      undefined,
      expect.stringMatching(/^result_unreadable/),
    ]);
    expect((await organisation.ask('GET', `/owner/approvals/${made}`)).body.request).toBeNull();
  });

  test('R1 a decision that cannot be recorded is not made', async () => {
    const id = await hold();
    const end = await refuseAuditRows(world);
    const answer = await withoutCalls(world, () => approve(id));
    await end();
    expectEnvelope(answer, 503, 'audit_unavailable');
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    expect((await approve(id)).body).toMatchObject({ status: 'approved', executed_at: expect.any(String) });
  });

  test('a condition of a decision is evaluated in its transaction: if it fails, nothing is decided', async () => {
    const id = await hold();
    const { services } = world.running;
    const word = { status: 'approved', how: 'passkey' } as const;
    const ids = { correlationId: uuidv4() };
    const fails = async () => false;
    const undone = await withoutCalls(world, () => decideHeldIf(services, organisation.owner, id, word, ids, fails));
    expect(undone).toEqual({ kind: 'undone' });
    const broken = () => Promise.reject(new Error('the counter cannot be read'));
    await expect(
      withoutCalls(world, () => decideHeldIf(services, organisation.owner, id, word, ids, broken)),
    ).rejects.toMatchObject({ name: 'AuditUnavailable', sent: false });
    expect((await agent.get(`/v1/approvals/${id}`)).body.status).toBe('pending');
    const decided = await decideHeld(services, organisation.owner, id, word, ids);
    if (decided.kind !== 'decided') throw new Error(decided.kind);
    await decided.replayed;
    const { audit_id } = (await agent.get(`/v1/approvals/${id}`)).body;
    expect((await evidenceOf(world, agent, audit_id)).payload.approval.how).toBe('passkey');
  });
});

describe('limits of the approval routes', () => {
  test('60 and 30 requests a minute per agent, then 429 with Retry-After', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const organisation = await world.organisation();
    const agent = await organisation.agent();
    for (const [path, limit, status] of [
      [`/v1/approvals/${uuidv4()}`, 60, 404],
      ['/v1/agents/me/pending-actions', 30, 200],
    ] as const) {
      for (let i = 0; i < limit; i++) expect((await agent.get(path)).status).toBe(status);
      const refused = await agent.get(path);
      expectEnvelope(refused, 429, 'rate_limited');
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });
});

describe.each(STORES)(`the database rejects inconsistent approval rows on %s${postgresNote}`, (store) => {
  test.each([
    `status = 'approved'`,
    `note = 'x'`,
    `exec_state = 'claimed', lease_owner = 'x'`,
    `status = 'approved', decided_at = 1, decided_by = 'x', decided_how = 'api', decision_audit_id = 'x'`,
    `status = 'denied', decided_at = 1, decided_by = 'x', decided_how = 'api', decision_audit_id = 'x', exec_state = 'claimed', lease_owner = 'x'`,
    `status = 'approved', decided_at = 1, decided_by = 'x', decided_how = 'rumour', decision_audit_id = 'x', exec_state = 'claimed', lease_owner = 'x'`,
    `status = 'approved', decided_at = 1, decided_by = 'x', decided_how = 'api', decision_audit_id = 'x', exec_state = 'done', lease_owner = 'x', replay_audit_id = 'x', executed_at = 1`,
    `status = 'approved', decided_at = 1, decided_by = 'x', decided_how = 'api', decision_audit_id = 'x', exec_state = 'intent', lease_owner = 'x'`,
  ])('%s', async (change) => {
    const world = await worldOf(store);
    const set = (what: string) => sql`update approvals set ${sql.raw(what)}`.execute(world.db);
    await expect(set(change)).rejects.toSatisfy(isRowFault);
    await set(`expires_at = expires_at + 1`);
  });

  const worlds = new Map<string, Promise<World>>();
  const worldOf = (kind: typeof store): Promise<World> => {
    const found = worlds.get(kind) ?? oneHeld(kind);
    worlds.set(kind, found);
    return found;
  };
});

async function oneHeld(store: (typeof STORES)[number]): Promise<World> {
  const world = await startWorld(store);
  const organisation = await world.organisation();
  await organisation.platform();
  expect((await (await organisation.agent()).act(WRITE)).status).toBe(202);
  return world;
}
