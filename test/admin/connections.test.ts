import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { setCredentialStatus } from '../../broker/store/connections.ts';
import { type Answer, expectStatus, send } from '../world/agent.ts';
import { leaksOf } from '../world/canary.ts';
import { expectEnvelope, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { everythingStored } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, type Organisation, READ, shared } from '../world/world.ts';

const FIRST = 'CANARY-1st-0123456789-abcdefghijklmno';
const SECOND = 'CANARY-2nd-0123456789-abcdefghijklmno';

describe.each(ONE_STORE)(`owners’ connections on %s${postgresNote}`, (store) => {
  const answers: Answer[] = [];
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  const other = shared(() => world.organisation());
  beforeAll(async () => {
    for (const each of [organisation, other]) await each.platform({ secret: null });
    await organisation.platform({ id: 'basic', manifest: { auth: { type: 'basic' } }, secret: null });
  });

  async function ask(method: string, path: string, body?: unknown, by?: Parameters<Organisation['ask']>[3]) {
    const answer = await organisation.ask(method, path, body, by);
    answers.push(answer);
    return answer;
  }
  const connect = (body: Record<string, unknown> = {}) =>
    ask('POST', '/owner/connections', { platform: 'demo', label: crypto.randomUUID(), secret: FIRST, ...body });
  const sent = () => world.upstream.seen.at(-1)?.headers.authorization;

  test('a credential is stored, used by the next call, and once replaced the new one by the call after', async () => {
    const agent = await organisation.agent();
    expect((await agent.act(READ)).status).toBe(412);
    const made = await expectStatus(201, connect({ label: 'main' }));
    expect(made.body).toEqual({
      id: expect.any(String),
      platform: 'demo',
      label: 'main',
      default: true,
      status: 'active',
      state: 'connected',
      has_secret: true,
      per_person: false,
      lacks_consent_for: [],
      last_test: null,
      connects_by: 'secret',
      oauth: null,
      failing: null,
      redirect_uri: null,
      secret_from: null,
      upstream_scopes: null,
      idle_seconds: null,
      wait_seconds: null,
      url: `${world.running.baseUrl}/proxy/main`,
      revision: 1,
      created_at: expect.any(String),
    });
    expect((await agent.act(READ)).status).toBe(200);
    expect(sent()).toBe(`Bearer ${FIRST}`);
    const { id } = made.body;
    await setCredentialStatus(world.db, { table: 'connections', organisationId: organisation.id, id }, 'reauth_needed');
    expect((await ask('GET', '/owner/connections')).body.connections[0].status).toBe('reauth_needed');
    const replaced = await ask('POST', `/owner/connections/${id.toUpperCase()}/secret`, { secret: SECOND });
    expect(replaced.status, replaced.text).toBe(200);
    expect(replaced.body).toEqual({ ...made.body, revision: 2 });
    expect((await agent.act(READ)).status).toBe(200);
    expect(sent()).toBe(`Bearer ${SECOND}`);
    // The echoed credential is redacted.
    world.upstream.answer = (request, response) => response.end(request.headers.authorization);
    expect((await agent.act(READ)).text).not.toContain(SECOND);
  });

  test('a 401 for a secret that was replaced meanwhile does not mark the new one as refused', async () => {
    const fresh = await world.organisation();
    await fresh.platform({ secret: null });
    const body = { platform: 'demo', label: 'main', secret: FIRST };
    const { id } = (await fresh.ask('POST', '/owner/connections', body)).body;
    const agent = await fresh.agent();
    const asked = new Promise<() => void>((resolve) => {
      world.upstream.answer = (_request, response) => resolve(() => response.writeHead(401).end());
    });
    const call = agent.act(READ);
    const refuse = await asked;
    expect((await fresh.ask('POST', `/owner/connections/${id}/secret`, { secret: SECOND })).status).toBe(200);
    refuse();
    expect((await call).body.error).toBe('platform_reauth_needed');
    expect((await fresh.ask('GET', '/owner/connections')).body.connections[0].status).toBe('active');
    world.upstream.answer = (_request, response) => response.writeHead(401).end();
    expect((await agent.act(READ)).body.error).toBe('platform_reauth_needed');
    expect((await fresh.ask('GET', '/owner/connections')).body.connections[0].status).toBe('reauth_needed');
    world.upstream.answer = undefined;
    expect((await agent.act(READ)).status).toBe(200);
    expect((await fresh.ask('GET', '/owner/connections')).body.connections[0].status).toBe('active');
  });

  test('only the first connection of a platform becomes the default automatically, and there are never two defaults', async () => {
    const fresh = await world.organisation();
    await fresh.platform({ secret: null });
    const make = (label: string, more = {}) =>
      fresh.ask('POST', '/owner/connections', { platform: 'demo', label, secret: FIRST, ...more });
    expect((await make('a')).body.default).toBe(true);
    expect((await make('b')).body.default).toBe(false);
    expect((await make('c', { default: true })).body.default).toBe(true);
    const { connections } = (await fresh.ask('GET', '/owner/connections')).body;
    const of = (label: string) => connections.find((one: { label: string }) => one.label === label).default;
    expect(['a', 'b', 'c'].map(of)).toEqual([false, false, true]);
    // The exported governance file can be applied.
    const { text } = (await fresh.ask('GET', '/owner/governance')).body;
    const plan = await fresh.ask('POST', '/owner/governance/plan', { text });
    const kinds = plan.body.changes.map(({ kind }: { kind: string }) => kind);
    expect([plan.status, kinds], plan.text).toEqual([200, ['policy']]);
  });

  test('of two concurrent connections with one label one is created', async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => connect({ label: 'twice' })));
    expect(made.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409]);
    const refused = made.find(({ status }) => status === 409)!;
    expectEnvelope(refused, 409, 'conflict');
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['an unknown platform', { platform: 'none' }, 'It has: basic, demo'],
    ['a platform of another organisation', { platform: 'theirs' }, 'platform'],
    ['a label with a space', { label: 'a b' }, 'label'],
    ['a secret of 7 characters', { secret: 'x234567' }, 'fewer than 8 characters'],
    ['a secret in parts where the platform takes one text', { secret: { token: 'x2345678' } }, 'given in parts'],
    ['an empty secret', { secret: '' }, 'is empty'],
    ['a secret that a header cannot contain', { secret: `${FIRST}\n` }, 'no header can carry'],
    ['NUL in the secret', { secret: `${FIRST}\0` }, 'body'],
    ['a password of 7 characters', { platform: 'basic', secret: 'ann@acme.example:x234567' }, 'password'],
    ['a secret that is not a string', { secret: [FIRST] }, 'secret'],
    ['no secret', { secret: undefined }, 'secret'],
    ['an unknown member', { secrets: FIRST }, 'unknown field'],
  ])('%s is refused, and not quoted', async (_name, body, says) => {
    const refused = await connect(body);
    expectEnvelope(refused, 400, 'invalid_request');
    if (says !== 'body') expect(refused.body.detail).toContain(says);
    expect(refused.text).not.toMatch(/x234567|CANARY/);
  });

  test('a password of 8 characters, or an empty one beside a user, is accepted', async () => {
    for (const secret of ['ann:x2345678', 'key-0123456789:', 'key-0123456789'])
      expect((await connect({ platform: 'basic', secret })).status).toBe(201);
  });

  test('a body that is not JSON is refused without quoting it', async () => {
    for (const text of [
      `{"secret":"${FIRST}`,
      `{"${FIRST}":1,"${FIRST}":2}`,
      FIRST,
      `{"secret":${FIRST}}`,
      `[${FIRST}`,
    ]) {
      const answer = await send(`${world.running.baseUrl}/owner/connections`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}`,
          'content-type': 'application/json',
        },
        body: text,
      });
      expectEnvelope(answer, 400, 'invalid_request');
      answers.push(answer);
    }
  });

  test('a connection that a grant names cannot be removed, unless the agent is revoked', async () => {
    const { id } = (await connect({ label: 'named' })).body;
    const agent = await organisation.agent({ name: 'user of it', grants: { demo: { connection_id: id } } });
    const refused = await ask('DELETE', `/owner/connections/${id}`);
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.detail).toContain(`user of it (${agent.agentId})`);
    expect((await agent.act(READ)).status).toBe(200);
    await organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
    const removed = await ask('DELETE', `/owner/connections/${id}`);
    expect([removed.status, removed.body], removed.text).toEqual([200, { id, removed: true }]);
    expectEnvelope(await ask('DELETE', `/owner/connections/${id}`), 404, 'not_found');
    expect((await ask('GET', '/owner/connections')).text).not.toContain(id);
  });

  test('a removed connection is not used by any call', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const [{ id }] = (await fresh.ask('GET', '/owner/connections')).body.connections;
    expect((await fresh.ask('DELETE', `/owner/connections/${id}`)).status).toBe(200);
    await withoutCalls(world, async () => expect((await agent.act(READ)).status).toBe(412));
  });

  test.each([
    [200, true],
    [204, true],
    [302, false],
    [401, false],
    [403, false],
    [404, true],
    [405, true],
    [429, true],
    [503, false],
  ])('the test of a connection that is answered %s returns ok: %s, and no text of the platform', async (status, ok) => {
    const { id } = (await connect()).body;
    world.upstream.answer = (_request, response) =>
      response
        .writeHead(status, { 'x-words': 'words of theirs', location: '/words' })
        .end(status === 204 ? '' : 'words of theirs');
    const before = world.upstream.seen.length;
    const answer = await ask('POST', `/owner/connections/${id}/test`);
    expect([answer.status, answer.body.ok, answer.body.upstream_status], answer.text).toEqual([200, ok, status]);
    expect(answer.text).not.toContain('words');
    expect(world.upstream.seen.length).toBe(before + 1);
    const { method, target, body, headers } = world.upstream.seen.at(-1)!;
    expect([method, target, body, headers.authorization]).toEqual(['GET', '/v1', '', `Bearer ${FIRST}`]);
    // A test does not change the status: the next call determines it.
    const { connections } = (await ask('GET', '/owner/connections')).body;
    expect(connections.find((one: { id: string }) => one.id === id).status).toBe('active');
  });

  test('the test of an unreachable connection, or of one without credential, says so', async () => {
    const fresh = await world.organisation();
    const test = async (id: string) => (await fresh.ask('POST', `/owner/connections/${id}/test`, {})).body;
    await fresh.platform({ id: 'private', manifest: { base_url: 'https://10.1.2.3/' }, secret: null });
    const refused = await test(await fresh.connection('private'));
    expect(refused).toMatchObject({ ok: false, upstream_status: null });
    expect(refused.detail).toContain('not one that this broker may connect to');
    await fresh.platform({ secret: null });
    const empty = await test(await fresh.connection('demo', { secret: null }));
    expect(empty).toMatchObject({ ok: false, upstream_status: null });
    expect(empty.detail).toContain('no secret');
    world.upstream.answer = (_request, response) => response.socket!.end('HTTP/1.1 2\r\n\r\n');
    const garbage = await test(await fresh.connection('demo', { isDefault: false }));
    expect(garbage).toMatchObject({ ok: false, upstream_status: null });
    const { rows } = (await fresh.ask('GET', '/owner/audit')).body;
    expect(rows.map(({ reason }: { reason: string }) => reason)).toEqual(['connection_tested']);
  });

  test('each change is recorded with its author, way and connection; a change that cannot be recorded is not made', async () => {
    const fresh = await world.organisation();
    await fresh.platform({ secret: null });
    const { id } = (await fresh.ask('POST', '/owner/connections', { platform: 'demo', label: 'm', secret: FIRST }))
      .body;
    await fresh.ask('POST', `/owner/connections/${id}/secret`, { secret: SECOND });
    await fresh.ask('POST', `/owner/connections/${id}/test`);
    await whileAuditRowsAreRefused(world, async () => {
      const body = { platform: 'demo', label: 'n', secret: FIRST };
      expectEnvelope(await fresh.ask('POST', '/owner/connections', body), 503, 'audit_unavailable');
      expectEnvelope(await fresh.ask('DELETE', `/owner/connections/${id}`), 503, 'audit_unavailable');
      const secret = { secret: FIRST };
      expectEnvelope(await fresh.ask('POST', `/owner/connections/${id}/secret`, secret), 503, 'audit_unavailable');
      expectEnvelope(await fresh.ask('POST', `/owner/connections/${id}/test`), 503, 'audit_unavailable');
    });
    const { connections } = (await fresh.ask('GET', '/owner/connections')).body;
    expect(connections).toEqual([expect.objectContaining({ id, label: 'm', revision: 2 })]);
    await fresh.ask('DELETE', `/owner/connections/${id}`);
    const { rows } = (await fresh.ask('GET', '/owner/audit')).body;
    const told = await Promise.all(
      rows.map(async (row: { id: string; reason: string }) => {
        const { receipt } = (await fresh.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
        const { payload } = await verifyReceipt(world, receipt);
        expect(payload).toMatchObject({ connection: id, platform: 'demo' });
        const { by, how, ...facts } = payload.change;
        expect([by, how]).toEqual([fresh.owner.id, 'api']);
        return [row.reason, facts];
      }),
    );
    const label = 'm';
    expect(told).toEqual([
      ['connection_removed', { label }],
      ['connection_tested', { label, ok: true, upstream_status: 200 }],
      ['connection_secret_replaced', { label, revision: 2 }],
      ['connection_created', { label, default: true, revision: 1 }],
    ]);
  });

  test('only admins of the organisation can change connections', async () => {
    const { id } = (await connect()).body;
    const changes: [string, string, unknown?][] = [
      ['POST', '/owner/connections', { platform: 'demo', label: 'l', secret: FIRST }],
      ['POST', `/owner/connections/${id}/secret`, { secret: SECOND }],
      ['POST', `/owner/connections/${id}/test`, {}],
      ['DELETE', `/owner/connections/${id}`],
    ];
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      expect((await ask('GET', '/owner/connections', undefined, owner)).status).toBe(200);
      for (const [method, path, body] of changes)
        expectEnvelope(await ask(method, path, body, owner), 403, 'forbidden');
    }
    const seen = world.upstream.seen.length;
    for (const [method, path, body] of changes.slice(1)) {
      expectEnvelope(await other.ask(method, path, body), 404, 'not_found');
      for (const wrong of ['x', '%00', crypto.randomUUID()])
        expectEnvelope(await ask(method, path.replace(id, wrong), body), 404, 'not_found');
    }
    expect((await other.ask('GET', '/owner/connections')).body.connections).toEqual([]);
    expect(world.upstream.seen.length).toBe(seen);
  });

  test('CX no answer, row or file contains a stored secret', async () => {
    expect(answers.length).toBeGreaterThan(60);
    answers.push(
      await organisation.ask('GET', '/owner/audit?limit=200'),
      await organisation.ask('GET', '/owner/governance'),
    );
    const stored = await everythingStored(world.environment);
    for (const secret of [FIRST, SECOND]) {
      for (const { text, headers } of answers) expect(leaksOf(secret, text + JSON.stringify([...headers]))).toEqual([]);
      for (const [place, bytes] of stored) expect([place, leaksOf(secret, bytes)]).toEqual([place, []]);
    }
  });
});
