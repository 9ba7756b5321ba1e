import { readFileSync, statSync } from 'node:fs';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../broker/identity/owner-session.ts';
import { runFile } from '../broker/main.ts';
import { type Answer, send } from './world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope } from './world/evidence.ts';
import { postgresNote, STORES } from './world/stores.ts';
import { CANARY, type Organisation, startWorld, type World } from './world/world.ts';

const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
const MINUTE_MS = 60_000;

describe.each(STORES)(`the owner API on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let other: Organisation;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    other = await world.organisation();
    await organisation.platform();
    await other.platform();
  });
  beforeEach(() => {
    world.clock.skewMs = 0;
  });

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    send(world.running.baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const localToken = () => world.running.governor.local.token.reveal();
  const local = (path: string, body: unknown) => post(path, body, { authorization: `Bearer ${localToken()}` });

  test('lists the organisation’s agents, oldest first, without the deleted, and no key', async () => {
    const fresh = await world.organisation();
    const first = await fresh.agent({ name: 'first', grants: {} });
    world.clock.skewMs = 10;
    const second = await fresh.agent({ name: 'second', grants: {}, agent: { created_at: Date.now() + 1_000 } });
    await fresh.agent({ grants: {}, agent: { status: 'deleted' } });
    const answer = await fresh.ask('GET', '/owner/agents');
    expect(answer.status).toBe(200);
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
    expect(answer.text).not.toMatch(/PUBLIC KEY|fingerprint/);
    expect(answer.text).toContain(second.agentId);
  });

  test('suspend, resume and revoke: each from where it may, by either id, with its cause', async () => {
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

  test('of two who move at once one does', async () => {
    const agent = await organisation.agent({ grants: {} });
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {})),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409, 409]);
  });

  test.each<[string, unknown]>([
    ['no object', []],
    ['an unknown member', { why: 'x' }],
    ['a reason of another type', { reason: 1 }],
    ['a reason that is too long', { reason: 'x'.repeat(501) }],
    ['NUL in the reason', { reason: '\0' }],
  ])('a body with %s changes nothing', async (_name, body) => {
    const agent = await organisation.agent({ grants: {} });
    expectEnvelope(await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, body), 400, 'invalid_request');
    expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
  });

  test('agents of another organisation are not there', async () => {
    const theirs = await other.agent();
    for (const id of [theirs.id, theirs.agentId, crypto.randomUUID(), 'x', '%00', '..%2f..', `${theirs.id}%20`]) {
      const answer = await organisation.ask('POST', `/owner/agents/${id}/suspend`, {});
      expectEnvelope(answer, 404, 'not_found');
      expect(answer.body.detail).toBe('The organisation has no such agent.');
    }
    expect((await organisation.ask('GET', '/owner/agents')).text).not.toContain(theirs.agentId);
    expect((await theirs.act(READ)).status).toBe(200);
  });

  test('who may do what: viewers read, admins change; the role is the one that the owner has now', async () => {
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
    const { db } = world.running.broker.store;
    const suspend = () => post(`/owner/agents/${agent.id}/suspend`, {}, { authorization: `Bearer ${session}` });
    await db.updateTable('owners').set({ role: 'viewer' }).where('id', '=', admin!.id).execute();
    expectEnvelope(await suspend(), 403, 'forbidden');
    await db.deleteFrom('owners').where('id', '=', admin!.id).execute();
    expectEnvelope(await suspend(), 401, 'invalid_token');
    expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
  });

  test('JW-23 no other bearer is an owner’s, and an owner’s session is over after 12 hours', async () => {
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

  test.each(['limit=0', 'limit=201', 'limit=1.5', 'limit=x', 'limit=', 'before=x', 'before=%00'])(
    'the audit refuses ?%s',
    async (query) => {
      expectEnvelope(await organisation.ask('GET', `/owner/audit?${query}`), 400, 'invalid_request');
    },
  );

  describe('getting in with the local issuer', () => {
    const tokenOf = (link: Answer): string => new URL(link.body.url).hash.slice(1);
    const cookieOf = (answer: Answer): string => answer.headers.get('set-cookie')!.split(';')[0]!;

    test('the credential of the command line lies in a file of its own, and opens only what is local', async () => {
      const path = runFile(world.running.broker.config.dataFolder);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
        url: world.running.baseUrl,
        local_token: localToken(),
      });
      for (const path of ['/owner/token', '/owner/link', '/owner/keys/rotate', '/owner/owners']) {
        for (const token of [
          mintOwnerSession(world.running.broker, organisation.owner).token,
          `cli_${'A'.repeat(43)}`,
          'x',
        ])
          expectEnvelope(await post(path, {}, { authorization: `Bearer ${token}` }), 401, 'invalid_token');
        expectEnvelope(await post(path, {}), 401, 'missing_token');
      }
    });

    test('a session for scripts', async () => {
      const made = await local('/owner/token', { email: organisation.owner.email });
      expect(made.body).toMatchObject({ email: organisation.owner.email, role: 'admin' });
      expect(Date.parse(made.body.expires_at) - Date.now()).toBeGreaterThan(11.9 * 60 * MINUTE_MS);
      const answer = await send(`${world.running.baseUrl}/owner/agents`, {
        headers: { authorization: `Bearer ${made.body.token}` },
      });
      expect(answer.status).toBe(200);
      expectEnvelope(await local('/owner/token', { email: 'nobody@acme.example' }), 404, 'not_found');
      expectEnvelope(await local('/owner/token', { email: 'no address' }), 400, 'invalid_request');
      // With several organisations somebody has to be named.
      expectEnvelope(await local('/owner/token', {}), 400, 'invalid_request');
    });

    test('a link signs in once, and its token is nowhere but behind the #', async () => {
      const link = await local('/owner/link', { email: organisation.owner.email });
      const token = tokenOf(link);
      expect(token).toMatch(/^sgn_[\w-]{43}$/);
      const stored = await world.running.broker.store.db.selectFrom('one_time_tokens').selectAll().execute();
      expect(JSON.stringify(stored)).not.toContain(token);
      const answers = await Promise.all(Array.from({ length: 5 }, () => post('/owner/sign-in', { token })));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 410, 410, 410, 410]);
      for (const answer of answers) if (answer.status === 410) expectEnvelope(answer, 410, 'link_used');
      const won = answers.find(({ status }) => status === 200)!;
      expect(won.body).toMatchObject({ email: organisation.owner.email, role: 'admin' });
      expect(won.headers.get('set-cookie')).toMatch(
        /^svc_owner=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict/,
      );
    });

    test('a link is over after 15 minutes, and no other token is one', async () => {
      const token = tokenOf(await local('/owner/link', { email: organisation.owner.email }));
      world.clock.skewMs = 15 * MINUTE_MS + 1;
      expectEnvelope(await post('/owner/sign-in', { token }), 410, 'link_used');
      world.clock.skewMs = 0;
      expect((await post('/owner/sign-in', { token })).status).toBe(200);
      for (const wrong of ['', 'x', `abt_${'A'.repeat(43)}`, `sgn_${'A'.repeat(43)}`, localToken()])
        expectEnvelope(await post('/owner/sign-in', { token: wrong }), 410, 'link_used');
    });

    test('the cookie of a browser reads; to change something it takes the header that no form can send', async () => {
      const agent = await organisation.agent({ grants: {} });
      const signedIn = await post('/owner/sign-in', {
        token: tokenOf(await local('/owner/link', { email: organisation.owner.email })),
      });
      const cookie = cookieOf(signedIn);
      const read = await send(`${world.running.baseUrl}/owner/agents`, { headers: { cookie } });
      expect(read.status).toBe(200);
      expectEnvelope(await post(`/owner/agents/${agent.id}/suspend`, {}, { cookie }), 403, 'forbidden');
      expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('active');
      expect((await post(`/owner/agents/${agent.id}/suspend`, {}, { cookie, 'x-svc-csrf': '1' })).status).toBe(200);
      // It is an owner's and nothing else.
      expectEnvelope(
        await send(`${world.running.baseUrl}/v1/agents/me`, { headers: { cookie } }),
        401,
        'missing_token',
      );
      expectEnvelope(
        await post('/owner/keys/rotate', { use: 'evidence' }, { cookie, 'x-svc-csrf': '1' }),
        401,
        'missing_token',
      );
      const out = await post('/owner/sign-out', {}, { cookie, 'x-svc-csrf': '1' });
      expect(out.headers.get('set-cookie')).toMatch(/^svc_owner=; Path=\/; Max-Age=0/);
    });
  });

  test('keys rotate: each job alone, and by nobody but whoever runs the broker', async () => {
    for (const use of ['evidence', 'issuing', 'root', 'session']) {
      const answer = await local('/owner/keys/rotate', { use });
      expect(answer.body).toMatchObject({ use, kid: expect.any(String) });
      expect(Date.parse(answer.body.signs_from)).toBeGreaterThan(Date.now());
    }
    for (const body of [{}, { use: 'all' }, { use: 'evidence', now: true }])
      expectEnvelope(await local('/owner/keys/rotate', body), 400, 'invalid_request');
    // The session key that signs next does not end the sessions of the last one.
    const session = mintOwnerSession(world.running.broker, organisation.owner).token;
    world.clock.skewMs = 3 * MINUTE_MS;
    const answer = await send(`${world.running.baseUrl}/owner/agents`, {
      headers: { authorization: `Bearer ${session}` },
    });
    expect(answer.status).toBe(200);
    expect((await organisation.ask('GET', '/owner/agents')).status).toBe(200);
  });

  test('KEY-03 the master key rotates under the calls, where one process holds it', async () => {
    const agent = await organisation.agent();
    const calls = Array.from({ length: 20 }, () => agent.act(READ));
    const answer = await local('/owner/keys/rotate', { use: 'master' });
    if (store === 'postgres') expectEnvelope(answer, 409, 'conflict');
    else expect(answer.body).toMatchObject({ use: 'master', rewrapped: expect.any(Number) });
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
  });
});
