/** A child's lifetime, its session, and its visibility (specification, Child identity; Authentication 4). */
import { describe, expect, test } from 'vitest';
import { receiptOf } from '../../broker/audit/receipt.ts';
import { retireFollowedKeys } from '../../broker/keys.ts';
import { moveAgent, updateAgent } from '../../broker/store/agents.ts';
import { freeChildSlot } from '../../broker/store/children.ts';
import type { Db } from '../../broker/store/store.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf, issue } from '../world/child.ts';
import { auditIdOf, evidenceOf, expectDenied, expectEnvelope, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { DAY_MS, HOUR_MS } from '../world/times.ts';
import { fresh, givenWorld, READ } from '../world/world.ts';

const POST = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } };

describe.each(STORES)(`the life of a child on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const parent = fresh(() => organisation.agent());
  const child = fresh(() => childOf(world, organisation, parent));
  const move = (verb: string, agent = parent) => organisation.ask('POST', `/owner/agents/${agent.agentId}/${verb}`, {});
  const eventsOf = async (agent: TestAgent) =>
    (await listAuditRows(world.db, organisation.id, { limit: 100 })).filter(
      (row) => row.kind === 'event' && row.agent_public_id === agent.agentId,
    );

  test('a call that is being held when its child ends is refused, and is not left pending', async () => {
    const end = async (db: Db) => {
      await freeChildSlot(db, { organisationId: organisation.id, id: parent.id });
      const place = { organisationId: organisation.id, id: child.id };
      const move = { from: ['active' as const], to: 'revoked' as const, cause: 'owner_manual' as const, detail: null };
      expect(await moveAgent(db, place, move, Date.now())).toBe(true);
    };
    if (store === 'sqlite') {
      // SQLite has no lock to wait for: the child ends between loading the facts and holding the call.
      const { services } = world.running;
      const { loadFacts } = services;
      services.loadFacts = async (...asked) => {
        services.loadFacts = loadFacts;
        const loaded = await loadFacts(...asked);
        await end(world.db);
        return loaded;
      };
    }
    const answer = await withLockContention(world, end, () => child.act(POST), { waiters: 1 });
    expect([answer.status, answer.body.reason], answer.text).toEqual([403, 'agent_revoked']);
    const { row, payload } = await evidenceOf(world, child, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'denied', reason: 'agent_revoked', approval_id: null });
    expect(payload.decision.evaluated).toEqual(['status']);
    const held = await world.db.selectFrom('approvals').select('id').where('agent_id', '=', child.id).execute();
    expect(held).toEqual([]);
  });

  describe('after its lifetime', () => {
    const TTL_MS = 600_000;
    const mortal = fresh(() => childOf(world, organisation, parent, { ttl_seconds: TTL_MS / 1000 }));
    const over = () => {
      world.clock.skewMs = TTL_MS + 1_000;
    };

    test('CH-15 its next call detects the expiry: it is halted, and an event is recorded once', async () => {
      expect((await mortal.act(READ)).status).toBe(200);
      over();
      const { body } = await expectDenied(world, mortal, READ, 'agent_revoked');
      expect(body).toMatchObject({
        error: 'agent_halted',
        halt: { state: 'revoked', cause: 'unknown', detail: 'the agent expired' },
      });
      await mortal.act(READ);
      const events = (await eventsOf(mortal)).filter(({ reason }) => reason === 'agent_expired');
      expect(events).toHaveLength(1);
      const { payload } = await verifyReceipt(world, receiptOf(events[0]!)!);
      expect(payload.change).toMatchObject({ by: 'time', how: 'time' });
      expect(body.halt.since).toBe(payload.change.expired_at);
      const me = (await mortal.get('/v1/agents/me')).body;
      expect(me).toMatchObject({ agent_status: 'revoked', halt: { since: payload.change.expired_at } });
      // Other children are not affected.
      expect((await child.act(READ)).status).toBe(200);
    });

    test('its status is expired for readers, before its next call and after', async () => {
      await organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true });
      const recognition = () =>
        organisation.ask('POST', '/v1/trqp/recognition', {
          entity_id: mortal.agentId,
          authority_id: world.running.broker.did,
          action: '*',
          resource: '*',
        });
      expect((await recognition()).body.recognized).toBe(true);
      over();
      expect((await recognition()).body).toMatchObject({ recognized: false, message: 'expired' });
      await mortal.act(READ);
      expect((await recognition()).body).toMatchObject({ recognized: false, message: 'expired' });
    });

    test('any call detects the expiry, also concurrent ones', async () => {
      over();
      const answers = await Promise.all(Array.from({ length: 8 }, () => mortal.get('/v1/agent/permissions')));
      for (const answer of answers) expect([answer.status, answer.body.reason]).toEqual([403, 'agent_revoked']);
      expect((await eventsOf(mortal)).filter(({ reason }) => reason === 'agent_expired')).toHaveLength(1);
      const row = await world.db
        .selectFrom('agents')
        .select('live_children')
        .where('id', '=', parent.id)
        .executeTakeFirst();
      expect(row!.live_children).toBe(1);
    });

    test('its held calls cannot be approved', async () => {
      const { body } = await mortal.act(POST);
      over();
      const approve = () => organisation.approve(body.approval_id);
      expectEnvelope(await withoutCalls(world, approve), 410, 'approval_expired');
      const { body: after } = await mortal.get(`/v1/approvals/${body.approval_id}`);
      expect(after).toMatchObject({ status: 'expired', executed_at: null });
    });

    test('its pending items end with it, and leave the inbox', async () => {
      const reader = await childOf(world, organisation, parent, {
        ttl_seconds: TTL_MS / 1000,
        grants: [{ platform: 'demo', scopes: ['demo:read'] }],
      });
      const { body: held } = await mortal.act(POST);
      const asked = await reader.post('/v1/access-request', { platform: 'demo', scope: 'demo:write' });
      expect(asked.status).toBe(202);
      const stays = await child.act(POST);
      over();
      const waiting = mortal.get(`/v1/approvals/${held.approval_id}?wait=20`);
      expect((await waiting).body.status).toBe('expired');
      expect((await reader.get(asked.body.poll_url)).body.status).toBe('expired');
      const { body: inbox } = await organisation.ask('GET', '/owner/approvals?status=pending');
      expect(inbox.approvals.map(({ approval_id }: { approval_id: string }) => approval_id)).toEqual([
        stays.body.approval_id,
      ]);
      const late = await organisation.approve(held.approval_id);
      expectEnvelope(late, 410, 'approval_expired');
    });

    test('a day later its bearer is unknown', async () => {
      world.clock.skewMs = TTL_MS + DAY_MS - 5_000;
      expect((await mortal.get('/v1/agents/me')).status).toBe(200);
      world.clock.skewMs = TTL_MS + DAY_MS + 1_000;
      for (const path of ['/v1/agents/me', '/v1/agent/permissions'])
        expectEnvelope(await mortal.get(path), 401, 'token_expired');
      expectEnvelope(await mortal.act(READ), 401, 'token_expired');
    });
  });

  describe('for its owners', () => {
    const listed = async () => (await organisation.ask('GET', '/owner/agents')).body.agents;
    const find = async (agent: TestAgent) =>
      (await listed()).find(({ agent_id }: { agent_id: string }) => agent_id === agent.agentId);

    test('it is listed with its parent, its end, and what keeps it from acting', async () => {
      expect(await find(child)).toMatchObject({
        agent_type: 'child',
        status: 'active',
        parent_agent_id: parent.agentId,
        contained: null,
        policy_id: null,
        expires_at: expect.any(String),
      });
      expect(await find(parent)).toMatchObject({ parent_agent_id: null, contained: null, expires_at: null });
      await move('suspend');
      expect(await find(child)).toMatchObject({ status: 'active', contained: 'parent_suspended' });
      await move('revoke');
      expect(await find(child)).toMatchObject({ status: 'active', contained: 'parent_revoked' });
      world.clock.skewMs = HOUR_MS + 1_000;
      expect(await find(child)).toMatchObject({ contained: 'expired' });
      world.clock.skewMs = HOUR_MS + DAY_MS + 1_000;
      expect(await find(child)).toBeUndefined();
      expect(await find(parent)).toBeDefined();
    });

    test('it has no policy of its own, and cannot be given a key', async () => {
      const policy = await organisation.policy([{ effect: 'allow' }]);
      expectEnvelope(await organisation.ask('POST', `/owner/agents/${child.id}/policy`, { policy }), 409, 'conflict');
      expectEnvelope(await organisation.ask('POST', `/owner/agents/${child.id}/bootstrap-token`, {}), 409, 'conflict');
    });

    test('a new owner of the parent becomes its owner, and the old owner can be removed', async () => {
      const successor = await organisation.addOwner('admin');
      await updateAgent(world.db, organisation.id, parent.id, { owner_id: successor.id });
      expect((await child.get('/v1/agents/me')).body.owner_id).toBe(successor.id);
      const removed = await organisation.ask('DELETE', `/owner/owners/${organisation.owner.id}`, undefined, successor);
      expect(removed.status, removed.text).toBe(200);
    });

    test('its name does not block other agents’ names', async () => {
      await childOf(world, organisation, parent, { name: 'deploy' });
      const invite = (agent_name: string) => organisation.ask('POST', '/owner/invites', { agent_name });
      expect((await invite('deploy')).status).toBe(200);
      expectEnvelope(await invite('triage'), 409, 'conflict');
    });
  });

  test('a token that was verified before is refused once its signing key is not the broker’s any more', async () => {
    const { keys, clock } = world.running.broker;
    expect((await child.act(READ)).status).toBe(200);
    await keys.rotate('issuing', clock());
    world.clock.skewMs = 15 * 60_000;
    const fresh = await childOf(world, organisation, parent);
    const { kid } = JSON.parse(Buffer.from(child.bearer.split('.')[0]!, 'base64url').toString());
    await world.db.deleteFrom('signing_keys').where('kid', '=', kid).execute();
    await keys.refresh();
    expectEnvelope(await child.act(READ), 401, 'invalid_token');
    expect((await fresh.act(READ)).status).toBe(200);
  });

  // The remaining tests do not depend on the store's SQL.
  if (!ONE_STORE.includes(store)) return;

  describe('its session', () => {
    const sessionOf = async (agent: TestAgent, headers: Record<string, string>) => {
      const { row, payload } = await evidenceOf(world, agent, auditIdOf(await agent.act(READ, headers)));
      expect(payload.session_id).toBe(row.session_id);
      return row.session_id;
    };

    test('JW-25 is the header’s value, verbatim, and may differ in another process', async () => {
      for (const session of ['run-1', 'run:2/a@b~c=d+e', 'x'.repeat(128)])
        expect(await sessionOf(child, { 'x-svc-session': session })).toBe(session);
      expect(await sessionOf(child, {})).toBeNull();
    });

    test.each([['x'.repeat(129)], ['a b'], ['é'], ['']])('JW-25 %j is refused, and not recorded', async (session) => {
      const answer = await withoutCalls(world, () => child.act(READ, { 'x-svc-session': session }));
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.body.detail).toContain('X-Svc-Session');
    });

    test('JW-25 from an agent with a key it is ignored, whatever its value', async () => {
      expect(await sessionOf(parent, { 'x-svc-session': 'stolen' })).toBeNull();
      expect((await parent.act(READ, { 'x-svc-session': 'x'.repeat(500) })).status).toBe(200);
      const token = parent.token({ session_id: 'mine' });
      expect(await sessionOf(parent, { authorization: `Bearer ${token}`, 'x-svc-session': 'stolen' })).toBe('mine');
    });

    test('is on the row of a malformed request', async () => {
      const answer = await child.act('{}', { 'x-svc-session': 'run-3' });
      expect([answer.status, answer.body.error]).toEqual([400, 'invalid_request']);
      expect((await evidenceOf(world, child, auditIdOf(answer))).row.session_id).toBe('run-3');
    });

    test('is on the rows of a held call and of its replay', async () => {
      const held = await child.act(POST, { 'x-svc-session': 'run-9' });
      await organisation.approve(held.body.approval_id);
      const { body } = await child.get(`/v1/approvals/${held.body.approval_id}?wait=10`);
      for (const id of [auditIdOf(held), body.audit_id])
        expect((await evidenceOf(world, child, id)).payload.session_id).toBe('run-9');
    });
  });

  describe('DID', () => {
    test('CH-15 a document without a key, controlled by the broker and the parent; 410 when it has expired or is revoked', async () => {
      await organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true });
      const documentOf = (agent: TestAgent) => agent.get(`/agents/${agent.agentId}/did.json`);
      const root = `did:web:localhost%3A${new URL(parent.baseUrl).port}`;
      const { body } = await expectStatus(200, documentOf(child));
      expect(body).toMatchObject({
        id: `${root}:agents:${child.agentId}`,
        controller: [root, `${root}:agents:${parent.agentId}`],
        authentication: [],
        assertionMethod: [],
      });
      expect(body).not.toHaveProperty('verificationMethod');
      world.clock.skewMs = HOUR_MS + 1_000;
      expect((await documentOf(child)).status).toBe(410);
      world.clock.skewMs = 0;
      await move('revoke', child);
      expect((await documentOf(child)).status).toBe(410);
    });
  });

  test('its bearer is accepted on the other routes for agents', async () => {
    const answer = await child.act(READ);
    expect((await child.get(`/v1/audit/${auditIdOf(answer)}/receipt`)).status).toBe(200);
    expectEnvelope(await parent.get(`/v1/audit/${auditIdOf(answer)}/receipt`), 401, 'not_your_row');
    const post = (path: string, body: unknown) => child.post(path, body);
    expect((await post('/v1/agents/self/diagnostics', { message: 'odd' })).status).toBe(201);
    const reader = await childOf(world, organisation, parent, {
      grants: [{ platform: 'demo', scopes: ['demo:read'] }],
    });
    const asked = await reader.post('/v1/access-request', { platform: 'demo', scope: 'demo:write' });
    expect([asked.status, asked.body.reason_code]).toEqual([202, 'not_granted']);
    const { body } = await organisation.ask('GET', '/owner/access-requests');
    const [request] = body.access_requests;
    await expectStatus(200, organisation.ask('POST', `/owner/access-requests/${request.request_id}/approve`, {}));
    expect((await reader.get(asked.body.poll_url)).body.status).toBe('approved');
    expect((await reader.act(POST)).status).toBe(202);
    const key = { 'idempotency-key': 'k1' };
    const change = { ...POST, method: 'PATCH', endpoint: '/items/1' };
    const [first, second] = [await child.act(change, key), await child.act(change, key)];
    expect(second.text).toBe(first.text);
  });

  test('after the issuing key is rotated and the old one destroyed, children stay valid until their end', async () => {
    const { broker } = world.running;
    await broker.keys.rotate('issuing', broker.clock());
    world.clock.skewMs = 15 * 60_000;
    await retireFollowedKeys(broker.store, broker.keys, broker.clock());
    await broker.keys.refresh();
    const fresh = await childOf(world, organisation, parent);
    const kid = (token: string) => JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid;
    expect(kid(fresh.bearer)).not.toBe(kid(child.bearer));
    for (const one of [child, fresh]) expect((await one.act(READ)).status).toBe(200);
    await world.restart();
    for (const one of [child, fresh]) expect((await one.act(READ)).status).toBe(200);
    expect((await issue(parent)).status).toBe(201);
  });
});
