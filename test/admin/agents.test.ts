import { describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { CANARY, givenWorld, READ, shared } from '../world/world.ts';

describe.each(STORES)(`the owner API on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const other = shared(() => world.demoOrganisation());

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    send(world.running.baseUrl + path, jsonPost(body, headers));
  const localToken = () => world.running.services.local.token.reveal();

  test('lists the organisation’s agents, oldest first, without deleted ones and without keys', async () => {
    const fresh = await world.organisation();
    const first = await fresh.agent({ name: 'first', grants: {} });
    world.clock.skewMs = 10;
    const second = await fresh.agent({ name: 'second', grants: {}, agent: { created_at: Date.now() + 1_000 } });
    await fresh.agent({ grants: {}, agent: { status: 'deleted' } });
    const answer = await expectStatus(200, fresh.ask('GET', '/owner/agents'));
    expect(answer.body.agents.map((agent: { name: string }) => agent.name)).toEqual(['first', 'second']);
    expect(answer.body.agents[0]).toMatchObject({
      id: first.id,
      agent_id: first.agentId,
      name: 'first',
      owner_id: fresh.owner.id,
      status: 'active',
      agent_type: 'key',
      status_cause: null,
    });
    expect(answer.body.agents[0].key_fingerprint).toMatch(/^[\w-]{43}$/);
    expect(answer.text).not.toMatch(/PUBLIC KEY/);
    expect(answer.text).toContain(second.agentId);
  });

  test('lists the breakers that refuse an agent’s calls, and until when', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent();
    await fresh.agent({ name: 'another' });
    for (let call = 0; call < 50; call++) await agent.act('{}');
    const { agents } = (await fresh.ask('GET', '/owner/agents')).body;
    const open = [{ cause: 'breaker_api_error', about: null, retry_after_seconds: expect.any(Number) }];
    expect(agents.map(({ breakers }: { breakers: unknown }) => breakers)).toEqual(expect.arrayContaining([open, []]));
    world.clock.skewMs = MINUTE_MS + 1_000;
    const later = (await fresh.ask('GET', '/owner/agents')).body.agents;
    expect(later.flatMap(({ breakers }: { breakers: unknown[] }) => breakers)).toEqual([]);
  });

  test('suspend, resume and revoke: each from the allowed statuses, by either id, with its cause', async () => {
    const agent = await organisation.agent();
    const move = (verb: string, id = agent.agentId, body: unknown = {}) =>
      organisation.ask('POST', `/owner/agents/${id}/${verb}`, body);
    const conflict = async (verb: string) => expectEnvelope(await move(verb), 409, 'conflict');
    await conflict('resume');
    const suspended = await move('suspend', agent.id, { reason: 'odd' });
    expect(suspended.body).toMatchObject({ status: 'suspended', status_cause: 'owner_manual', status_detail: 'odd' });
    await conflict('suspend');
    expect((await agent.act(READ)).status).toBe(403);
    const resumed = await move('resume', agent.id.toUpperCase());
    expect(resumed.body).toMatchObject({ status: 'active', status_cause: null, status_detail: null });
    expect((await agent.act(READ)).status).toBe(200);
    expect((await move('revoke')).body).toMatchObject({ status: 'revoked', status_cause: 'owner_manual' });
    await conflict('revoke');
    await conflict('resume');
    await conflict('suspend');
    expect((await agent.act(READ)).body.reason).toBe('agent_revoked');
  });

  test('of two concurrent changes of status one succeeds', async () => {
    const agent = await organisation.agent({ grants: {} });
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {})),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test('each change is recorded with a receipt that names the author, the way and the agent', async () => {
    const fresh = await world.organisation();
    const agent = await fresh.agent({ grants: {} });
    const session = mintOwnerSession(world.running.broker, fresh.owner).token;
    await fresh.ask('POST', `/owner/agents/${agent.id}/suspend`, { reason: 'odd' });
    world.clock.skewMs += 5;
    const cookie = { cookie: `${sessionCookieName(world.running.baseUrl)}=${session}`, 'x-svc-csrf': '1' };
    expect((await post(`/owner/agents/${agent.id}/resume`, {}, cookie)).status).toBe(200);
    world.clock.skewMs += 5;
    await fresh.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
    await fresh.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
    const { rows } = (await fresh.ask('GET', '/owner/audit')).body;
    expect(
      rows.map(({ kind, reason, result, detail }: Record<string, unknown>) => [kind, reason, result, detail]),
    ).toEqual([
      ['event', 'agent_revoked', null, null],
      ['event', 'agent_resumed', null, null],
      ['event', 'agent_suspended', null, 'odd'],
    ]);
    for (const [i, how] of ['api', 'console', 'api'].entries()) {
      const fetched = await expectStatus(200, fresh.ask('GET', `/v1/audit/${rows[i].id}/receipt`));
      const { payload } = await verifyReceipt(world, fetched.body.receipt);
      expect(payload).toMatchObject({ kind: 'event', reason: rows[i].reason, agent: agent.agentId });
      expect(payload.change).toEqual({ by: fresh.owner.id, how });
      expect(payload.row_hash).toBe(rows[i].row_hash);
      expect(JSON.stringify(payload)).not.toContain('odd');
    }
  });

  test('a change that cannot be recorded is not made', async () => {
    const agent = await organisation.agent();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {}), 503, 'audit_unavailable');
    });
    expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
  });

  test.each<[string, unknown]>([
    ['a value that is not an object', []],
    ['an unknown member', { why: 'x' }],
    ['a reason of another type', { reason: 1 }],
    ['a reason that is too long', { reason: 'x'.repeat(501) }],
    ['NUL in the reason', { reason: '\0' }],
  ])('a body with %s changes nothing', async (_name, body) => {
    const agent = await organisation.agent({ grants: {} });
    expectEnvelope(await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, body), 400, 'invalid_request');
    expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
  });

  test('agents of another organisation are not found', async () => {
    const theirs = await other.agent();
    for (const id of [theirs.id, theirs.agentId, crypto.randomUUID(), 'x', '%00', '..%2f..', `${theirs.id}%20`]) {
      const answer = await organisation.ask('POST', `/owner/agents/${id}/suspend`, {});
      expectEnvelope(answer, 404, 'not_found');
      expect(answer.body.detail).toBe('The organisation has no such agent.');
    }
    expect((await organisation.ask('GET', '/owner/agents')).text).not.toContain(theirs.agentId);
    expect((await theirs.act(READ)).status).toBe(200);
  });

  test('viewers read, admins change; the owner’s current role counts', async () => {
    const agent = await organisation.agent({ grants: {} });
    const [viewer, approver, admin] = await Promise.all(
      (['viewer', 'approver', 'admin'] as const).map((role) => organisation.addOwner(role)),
    );
    for (const path of ['/owner/agents', '/owner/audit'])
      for (const owner of [viewer!, approver!, admin!])
        expect((await organisation.ask('GET', path, undefined, owner)).status).toBe(200);
    for (const owner of [viewer!, approver!]) {
      const answer = await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {}, owner);
      expectEnvelope(answer, 403, 'forbidden');
      expect(answer.body.detail).toContain(owner.role);
    }
    const session = mintOwnerSession(world.running.broker, admin!).token;
    const suspend = () => post(`/owner/agents/${agent.id}/suspend`, {}, { authorization: `Bearer ${session}` });
    await world.db.updateTable('owners').set({ role: 'viewer' }).where('id', '=', admin!.id).execute();
    expectEnvelope(await suspend(), 403, 'forbidden');
    await world.db.deleteFrom('owners').where('id', '=', admin!.id).execute();
    expectEnvelope(await suspend(), 401, 'invalid_token');
    expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
  });

  test('JW-23 no other bearer is accepted as an owner’s, and an owner’s session expires after 12 hours', async () => {
    const agent = await organisation.agent();
    const { receipt } = await evidenceOf(world, agent, auditIdOf(await agent.act(READ)));
    for (const token of [agent.token(), receipt, localToken(), 'x.y.z']) {
      const answer = await send(`${world.running.baseUrl}/owner/agents`, {
        headers: { authorization: `Bearer ${token}` },
      });
      expectEnvelope(answer, 401, 'invalid_token');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    }
    expectEnvelope(await send(`${world.running.baseUrl}/owner/agents`, {}), 401, 'missing_token');
    const session = {
      headers: { authorization: `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}` },
    };
    expect((await send(`${world.running.baseUrl}/owner/agents`, session)).status).toBe(200);
    world.clock.skewMs = 12 * 60 * MINUTE_MS + 1_000;
    expectEnvelope(await send(`${world.running.baseUrl}/owner/agents`, session), 401, 'token_expired');
  });

  test('the audit: newest first, page by page, of the own organisation only', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      world.clock.skewMs += 5;
      ids.unshift(auditIdOf(await agent.act({ ...READ, reason: `call ${i}` })));
    }
    const first = await fresh.ask('GET', '/owner/audit?limit=2');
    expect(first.body.rows.map((row: { id: string }) => row.id)).toEqual(ids.slice(0, 2));
    expect(first.body.next).toBe(ids[1]);
    const second = await fresh.ask('GET', `/owner/audit?limit=2&before=${first.body.next.toUpperCase()}`);
    expect(second.body.rows.map((row: { id: string }) => row.id)).toEqual(ids.slice(2, 4));
    const last = await fresh.ask('GET', `/owner/audit?limit=2&before=${second.body.next}`);
    expect([last.body.rows.map((row: { id: string }) => row.id), last.body.next]).toEqual([ids.slice(4), null]);
    expect(first.body.rows[0]).toMatchObject({
      agent_public_id: agent.agentId,
      result: 'allowed',
      agent_reason: 'call 4',
      decision: { matched: expect.any(Array) },
      created_at: expect.stringMatching(/Z$/),
    });
    expect(first.text).not.toContain(CANARY);
    expect((await other.ask('GET', '/owner/audit')).text).not.toContain(agent.agentId);
  });

  test.each(['limit=0', 'limit=201', 'limit=1.5', 'limit=x', 'limit=', 'limit=1&limit=2', 'before=x', 'before=%00'])(
    'the audit refuses ?%s',
    async (query) => {
      const answer = await organisation.ask('GET', `/owner/audit?${query}`);
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.body.detail).toContain(query.split('=')[0]);
    },
  );

  test.each([
    ...['/owner/audit?utm=1', '/owner/audit?%00=x', '/owner/approvals?agnet=x', '/owner/agents?state=active'],
    ...['/owner/sign-in-options?organisation=acme', '/owner/openapi.json?version=1'],
  ])('an unknown query parameter is refused: GET %s', async (path) => {
    expectEnvelope(await organisation.ask('GET', path), 400, 'invalid_request');
  });
});
