/** Registration (specification, Registration and binding): requested by anybody, decided by an owner, the key handed out once. */
import { createPrivateKey, createPublicKey, randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { expireRegistrations, openRegistration } from '../../broker/admin/registrations/registration.ts';
import { clientKey } from '../../broker/auth/client-address.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { mintToken } from '../../broker/crypto/one-time-token.ts';
import { startHousekeeping } from '../../broker/process/housekeeping.ts';
import { listOpenRegistrations } from '../../broker/store/open-registrations.ts';
import { capRegistrationsOfNobody } from '../../broker/store/registrations.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, jsonPost, send, TestAgent } from '../world/agent.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, type Organisation, READ, shared, startWorld, type World } from '../world/world.ts';

const DEMO = [{ platformId: 'demo', scopes: ['demo:read', 'demo:write'] }];
const NOBODY = 'deadbeef-0000-4000-8000-000000000000';

describe.each(STORES)(`registration on %s${postgresNote}`, (store) => {
  /** For tests that do not depend on the store's SQL. */
  const onOne = testOnOne(store);
  let names = 0;
  const world = givenWorld(store);
  const organisation = shared(() => newOrganisation());
  beforeEach(async () => {
    // Keeps tests from reaching each other's limits.
    await world.db.deleteFrom('registrations').execute();
  });

  const newOrganisation = async (): Promise<Organisation> => {
    const fresh = await world.organisation();
    await fresh.platform();
    await fresh.policy([{ effect: 'allow' }], 'default');
    return fresh;
  };
  const request = async (method: string, path: string, init: Parameters<typeof send>[1] = {}): Promise<Answer> => {
    const answer = await send(world.running.baseUrl + path, { method, ...init });
    expectDeclared(method, path, answer);
    return answer;
  };
  const get = (path: string) => request('GET', path);
  const register = (body: Record<string, unknown> = {}, from?: string): Promise<Answer> =>
    request('POST', '/v1/register', {
      ...jsonPost({
        owner_id: organisation.owner.id,
        agent_name: `newcomer ${++names}`,
        requested_scopes: DEMO,
        ...body,
      }),
      ...(from !== undefined && { from }),
    });
  const registered = async (body: Record<string, unknown> = {}) => {
    const { body: answer } = await expectStatus(202, register(body));
    return { token: answer.registration_token as string, agentId: answer.client_id as string };
  };
  const statusOf = (token: string) => get(`/v1/register/status/${token}`);
  const claim = (token: string) => get(`/v1/register/claim-key/${token}`);
  const decide = (verb: string, token: string, body?: unknown, by?: OwnerTable) =>
    organisation.ask('POST', `/v1/register/${verb}/${token}`, body, by);
  const approved = async (body: Record<string, unknown> = {}) => {
    const one = await registered(body);
    await expectStatus(200, decide('approve', one.token));
    return one;
  };
  const agentOf = (agentId: string, pem: string): TestAgent => {
    const privateKey = createPrivateKey(pem);
    const publicPem = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' }).toString();
    const keys = { privateKey, publicPem };
    const agent = new TestAgent({
      baseUrl: world.running.baseUrl,
      id: '',
      agentId,
      ownerId: organisation.owner.id,
      keys,
    });
    agent.clock = () => Date.now() + world.clock.skewMs;
    return agent;
  };
  const newest = async (reason: string) => {
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=50')).body;
    return rows.find((row: { reason: string }) => row.reason === reason);
  };

  test('register → approve → claim → a governed call, over HTTP alone', async () => {
    const asked = await expectStatus(202, register({ agent_name: 'triage', agent_description: 'Sorts issues.' }));
    const { registration_token: token, client_id: agentId } = asked.body;
    expect(asked.body).toEqual({
      registration_token: expect.stringMatching(/^reg_[\w-]{43}$/),
      poll_url: `/v1/register/status/${token}`,
      status: 'pending',
      client_id: expect.stringMatching(/^agt_[a-z0-9]{20}$/),
      scope: 'demo:read demo:write',
      expires_in: 86_400,
    });
    const waiting = await get(asked.body.poll_url);
    expect(waiting.body).toEqual({ status: 'pending' });
    expect(waiting.headers.get('referrer-policy')).toBe('no-referrer');
    expectEnvelope(await claim(token), 409, 'registration_pending');

    const approval = await decide('approve', token);
    expect(approval.body).toMatchObject({ status: 'approved', agent_id: agentId, granted: DEMO, dropped: [] });
    const now = await statusOf(token);
    expect(now.body).toEqual({
      status: 'approved',
      agent_id: agentId,
      mcp_config: {
        mcpServers: {
          'agent-broker': {
            command: 'npx',
            args: ['-y', 'agent-broker', 'mcp'],
            env: {
              AGENT_BROKER_URL: world.running.baseUrl,
              AGENT_BROKER_AGENT_ID: agentId,
              AGENT_BROKER_OWNER_ID: organisation.owner.id,
              AGENT_BROKER_PRIVATE_KEY: expect.stringContaining('private key'),
            },
          },
        },
      },
    });
    const key = await expectStatus(200, claim(token));
    expect(Object.keys(key.body)).toEqual(['private_key']);
    expect(key.body.private_key).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
    // RG-13
    expect([key.headers.get('cache-control'), key.headers.get('referrer-policy')]).toEqual(['no-store', 'no-referrer']);
    const agent = agentOf(agentId, key.body.private_key);
    await expectStatus(200, agent.act(READ));
    expect((await agent.get('/v1/agents/me')).body).toMatchObject({ name: 'triage', agent_status: 'active' });
    expectEnvelope(await claim(token), 410, 'key_gone');
  });

  test('a decision is recorded with a receipt: by whom, what was granted, and that the key was collected', async () => {
    const { token, agentId } = await approved();
    await claim(token);
    const payloadOf = async (reason: string) => {
      const row = await newest(reason);
      const receipt = await organisation.ask('GET', `/v1/audit/${row.id}/receipt`);
      return (await verifyReceipt(world, receipt.body.receipt)).payload;
    };
    const decision = await payloadOf('registration_approved');
    expect(decision).toMatchObject({ kind: 'event', agent: agentId });
    expect(decision.change).toMatchObject({ by: organisation.owner.id, how: 'api', granted: DEMO, dropped: [] });
    expect(JSON.stringify(decision)).not.toContain('newcomer');
    const claimed = await payloadOf('registration_key_claimed');
    expect(claimed).toMatchObject({ agent: agentId, change: { by: agentId, how: 'token', status: 'active' } });
    const other = await registered();
    await decide('reject', other.token);
    expect((await payloadOf('registration_rejected')).change).toMatchObject({ agent_id: other.agentId });
  });

  test('rejected: no agent is created, and there is no key', async () => {
    const { token, agentId } = await registered();
    expectEnvelope(await decide('reject', token, { scopes: [] }), 400, 'invalid_request');
    const answer = await decide('reject', token, {});
    expect(answer.body).toMatchObject({ status: 'rejected', granted: null, claim_until: null });
    expect((await statusOf(token)).body).toEqual({ status: 'rejected' });
    expectEnvelope(await claim(token), 410, 'key_gone');
    expect((await organisation.ask('GET', '/owner/agents')).text).not.toContain(agentId);
    for (const verb of ['approve', 'reject']) {
      const late = await decide(verb, token);
      expectEnvelope(late, 409, 'already_decided');
      expect(late.body.status).toBe('rejected');
    }
  });

  test('RG-01 50 parallel claims: one key, 49 times 410, and no key in the store', async () => {
    const { token, agentId } = await approved();
    const answers = await withLockContention(
      world,
      (db) => db.updateTable('registrations').set({ source: 'held up' }).execute(),
      () => Promise.all(Array.from({ length: 50 }, () => claim(token))),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expectEnvelope(answer, 410, 'key_gone');
    const pem: string = won[0]!.body.private_key;
    expect((await agentOf(agentId, pem).act(READ)).status).toBe(200);
    const row = await world.db.selectFrom('registrations').selectAll().executeTakeFirstOrThrow();
    expect([row.private_key, row.claimed_at === null]).toEqual([null, false]);
    const stored = await everythingStored(world.environment);
    const secretLine = pem.split('\n')[5]!;
    expect(placesOf(secretLine, stored)).toEqual([]);
    expect(placesOf(Buffer.from(secretLine, 'base64').toString('latin1'), stored)).toEqual([]);
    expect(placesOf(token, stored)).toEqual([]);
  });

  test('the stored key is sealed, and is wrapped again with a new master key', async () => {
    const { token, agentId } = await approved();
    const before = await world.db.selectFrom('registrations').selectAll().executeTakeFirstOrThrow();
    expect(Buffer.from(before.private_key!).includes('PRIVATE KEY')).toBe(false);
    if (store === 'sqlite') {
      const rotated = await request('POST', '/owner/keys/rotate', {
        headers: {
          authorization: `Bearer ${world.running.services.local.token.reveal()}`,
          'content-type': 'application/json',
        },
        body: '{"use":"master"}',
      });
      expect(rotated.status, rotated.text).toBe(200);
      const after = await world.db.selectFrom('registrations').selectAll().executeTakeFirstOrThrow();
      expect(Buffer.from(after.private_key!).equals(Buffer.from(before.private_key!))).toBe(false);
    }
    const key = await claim(token);
    expect((await agentOf(agentId, key.body.private_key).act(READ)).status).toBe(200);
  });

  test('KEY-01 a key that was altered in the store is not handed out, and is not consumed', async () => {
    const { token } = await approved();
    const row = await world.db.selectFrom('registrations').selectAll().executeTakeFirstOrThrow();
    const altered = Buffer.from(row.private_key!);
    altered[altered.length - 1]! ^= 1;
    await world.db.updateTable('registrations').set({ private_key: altered }).execute();
    expectEnvelope(await claim(token), 503, 'credential_unreadable');
    await world.db.updateTable('registrations').set({ private_key: row.private_key }).execute();
    expect((await claim(token)).status).toBe(200);
  });

  test('RG-02 a key can be collected for an hour', async () => {
    const { token } = await approved();
    world.clock.skewMs = HOUR_MS + 1_000;
    const late = await claim(token);
    expectEnvelope(late, 410, 'key_gone');
    expect(late.body.detail).toContain('within an hour');
    expect((await statusOf(token)).body.status).toBe('approved');
  });

  test('a key can be collected in the last minute', async () => {
    const { token } = await approved();
    world.clock.skewMs = HOUR_MS - 60_000;
    expect((await claim(token)).status).toBe(200);
  });

  test('RG-03 the key is destroyed before it is sent: when that cannot be recorded, it still exists', async () => {
    const { token } = await approved();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await claim(token), 503, 'audit_unavailable');
    });
    expect((await claim(token)).status).toBe(200);
    expectEnvelope(await claim(token), 410, 'key_gone');
  });

  onOne('RG-13 HEAD takes no key: an answer without a body would lose it', async () => {
    const { token } = await approved();
    const head = await send(`${world.running.baseUrl}/v1/register/claim-key/${token}`, { method: 'HEAD' });
    expect([head.status, head.headers.get('allow')]).toEqual([405, 'GET']);
    expect((await claim(token)).status).toBe(200);
  });

  onOne('RG-02 what is no registration token is 404 everywhere, all alike', async () => {
    const { token } = await registered();
    const unknown = mintToken('registration').token.reveal();
    const wrong = ['x', unknown, `${token}x`, token.slice(0, -1), mintToken('invite').token.reveal(), '%00', 'a%2Fb'];
    for (const one of wrong) {
      for (const what of ['status', 'claim-key', 'stream'])
        expectEnvelope(await get(`/v1/register/${what}/${one}`), 404, 'not_found');
      for (const verb of ['approve', 'reject']) expectEnvelope(await decide(verb, one), 404, 'not_found');
    }
    // The id is not a capability.
    const [{ id }] = (await organisation.ask('GET', '/owner/registrations')).body.registrations;
    expectEnvelope(await statusOf(id), 404, 'not_found');
  });

  test('a registration expires after 24 hours, and is deleted a day later', async () => {
    const { token } = await registered();
    world.clock.skewMs = 24 * HOUR_MS + 1_000;
    expect((await statusOf(token)).body).toEqual({ status: 'expired' });
    for (const verb of ['approve', 'reject']) expectEnvelope(await decide(verb, token), 410, 'request_expired');
    expectEnvelope(await claim(token), 410, 'key_gone');
    const { broker, services } = world.running;
    await expireRegistrations(broker, services.changes, broker.clock());
    expect((await statusOf(token)).body.status).toBe('expired');
    expectEnvelope(await decide('approve', token), 410, 'request_expired');
    const listed = await organisation.ask('GET', '/owner/registrations?status=expired');
    expect(listed.body.registrations).toHaveLength(1);
    await housekeepingOf(world);
    expect((await statusOf(token)).status).toBe(200);
    world.clock.skewMs = 48 * HOUR_MS + 60_000;
    await housekeepingOf(world);
    expectEnvelope(await statusOf(token), 404, 'not_found');
  });

  test('RG-05 the named owner and admins may decide; viewers, other approvers and other organisations may not', async () => {
    const other = await newOrganisation();
    const [viewer, approver, asked, admin] = await Promise.all([
      organisation.addOwner('viewer'),
      organisation.addOwner('approver'),
      organisation.addOwner('approver'),
      organisation.addOwner('admin'),
    ]);
    const { token } = await registered({ owner_id: asked!.id });
    const toViewer = await registered({ owner_id: viewer!.id });
    const [{ id }] = (await organisation.ask('GET', '/owner/registrations?limit=1')).body.registrations;
    for (const verb of ['approve', 'reject']) {
      const path = `/v1/register/${verb}/${token}`;
      for (const by of [viewer!, approver!]) expectEnvelope(await decide(verb, token, undefined, by), 403, 'forbidden');
      expectEnvelope(await decide(verb, toViewer.token, undefined, viewer), 403, 'forbidden');
      expectEnvelope(await other.ask('POST', path), 403, 'forbidden');
      expectEnvelope(await other.ask('POST', `/owner/registrations/${id}/${verb}`), 404, 'not_found');
      expectEnvelope(await request('POST', path), 401, 'missing_token');
      const agent = await organisation.agent({ grants: {} });
      const asAgent = await request('POST', path, { headers: { authorization: `Bearer ${agent.token()}` } });
      expectEnvelope(asAgent, 401, 'invalid_token');
      const session = mintOwnerSession(world.running.broker, asked!).token;
      world.clock.skewMs = 13 * HOUR_MS;
      const late = await request('POST', path, { headers: { authorization: `Bearer ${session}` } });
      expectEnvelope(late, 401, 'token_expired');
      world.clock.skewMs = 0;
    }
    expect((await statusOf(token)).body.status).toBe('pending');
    expect((await decide('approve', token, undefined, asked)).status).toBe(200);
    expect((await decide('reject', toViewer.token, undefined, admin)).status).toBe(200);
  });

  test('an approver approves with the default policy only, an admin with any', async () => {
    const fresh = await newOrganisation();
    const lax = await fresh.policy([{ effect: 'allow' }], 'lax');
    const asked = await fresh.addOwner('approver');
    const ask = async () => (await registered({ owner_id: asked.id })).token;
    const [first, second] = [await ask(), await ask()];
    for (const policy of [lax, 'lax'])
      expectEnvelope(await decide('approve', first, { policy }, asked), 403, 'forbidden');
    expect((await statusOf(first)).body.status).toBe('pending');
    expect((await decide('approve', first, { policy: 'default', name: 'one' }, asked)).status).toBe(200);
    await expectStatus(200, decide('approve', second, { policy: 'lax', name: 'two' }, await fresh.addOwner('admin')));
  });

  test('of concurrent decisions one succeeds; a decision that cannot be recorded is not made', async () => {
    const { token, agentId } = await registered();
    const answers = await withLockContention(
      world,
      (db) => db.updateTable('registrations').set({ source: 'held up' }).execute(),
      () => Promise.all(Array.from({ length: 8 }, (_, i) => decide(i % 2 ? 'approve' : 'reject', token))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expectEnvelope(answer, 409, 'already_decided');
    const { status } = (await statusOf(token)).body;
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.filter((agent: { agent_id: string }) => agent.agent_id === agentId)).toHaveLength(
      status === 'approved' ? 1 : 0,
    );
    const next = await registered();
    await whileAuditRowsAreRefused(world, async () => {
      for (const verb of ['approve', 'reject'])
        expectEnvelope(await decide(verb, next.token), 503, 'audit_unavailable');
    });
    expect((await statusOf(next.token)).body.status).toBe('pending');
    expect((await organisation.ask('GET', '/owner/agents')).text).not.toContain(next.agentId);
  });

  onOne('an approval narrows: scopes, a policy, a name; what no platform has is dropped and told', async () => {
    const requested_scopes = [
      ...DEMO,
      { platformId: 'nowhere', scopes: ['nowhere:all'] },
      { platformId: 'demo', scopes: ['demo:gone'] },
    ];
    const wide = await registered({ requested_scopes });
    const [{ id }] = (await organisation.ask('GET', '/owner/registrations?limit=1')).body.registrations;
    expect((await organisation.ask('GET', `/owner/registrations/${id}`)).body).toMatchObject({
      unknown_scopes: [{ platformId: 'demo', scopes: ['demo:gone'] }, requested_scopes[1]],
      policy: { name: 'default', version: 1 },
      namesake: null,
      owner_email: organisation.owner.email,
      decided_by_email: null,
      expires_in_seconds: expect.toSatisfy((left: number) => left > 86_000 && left <= 86_400),
    });
    const all = await decide('approve', wide.token);
    expect(all.body).toMatchObject({
      requested_scopes: [{ platformId: 'demo', scopes: [...DEMO[0]!.scopes, 'demo:gone'] }, requested_scopes[1]],
      granted: DEMO,
      dropped: [{ platformId: 'demo', scopes: ['demo:gone'] }, requested_scopes[1]],
    });
    await organisation.policy([{ effect: 'deny' }], `none-${store}`);
    const { token, agentId } = await registered();
    const scopes = [{ platformId: 'demo', scopes: ['demo:read'] }];
    for (const body of [
      { scopes: [{ platformId: 'demo', scopes: ['demo:delete'] }] },
      { scopes: [{ platformId: 'other', scopes: ['demo:read'] }] },
      { policy: 'no such policy' },
      { name: 'a\nb' },
      { scope: [] },
    ])
      expectEnvelope(await decide('approve', token, body), 400, 'invalid_request');
    expect((await statusOf(token)).body.status, 'a word that cannot be decides nothing').toBe('pending');
    const name = `renamed ${store}`;
    const narrow = await decide('approve', token, { scopes, policy: `none-${store}`, name });
    expect(narrow.body).toMatchObject({ granted: scopes, dropped: [] });
    const agent = agentOf(agentId, (await claim(token)).body.private_key);
    expect((await agent.act(READ)).body.reason).toBe('denied_by_policy');
    expect((await agent.get('/v1/agents/me')).body.name).toBe(name);
    const none = await registered({ requested_scopes: [] });
    expect((await decide('approve', none.token)).body).toMatchObject({ granted: [], dropped: [] });
  });

  onOne('a name that a live agent has is a conflict, until another is given', async () => {
    const agent_name = `taken ${store}`;
    const first = await approved({ agent_name });
    const second = await registered({ agent_name });
    const [{ id }] = (await organisation.ask('GET', '/owner/registrations?limit=1')).body.registrations;
    const { namesake } = (await organisation.ask('GET', `/owner/registrations/${id}`)).body;
    expect(namesake).toBe(first.agentId);
    const refused = await decide('approve', second.token);
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.detail).toContain('another name');
    expect((await decide('approve', second.token, { name: `${agent_name} too` })).status).toBe(200);
  });

  test('owners list, read and decide by id, newest first, page by page; key and token are never shown', async () => {
    const fresh = await newOrganisation();
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      world.clock.skewMs += 5;
      await registered({ owner_id: fresh.owner.id, agent_name: `listed ${i}`, agent_description: '<b>hi</b>' });
    }
    const viewer = await fresh.addOwner('viewer');
    const first = await fresh.ask('GET', '/owner/registrations?limit=2', undefined, viewer);
    expect(first.body.registrations.map((one: { agent_name: string }) => one.agent_name)).toEqual([
      'listed 2',
      'listed 1',
    ]);
    expect(first.body.registrations[0]).toMatchObject({
      status: 'pending',
      may_decide: false,
      source: expect.any(String),
    });
    const rest = await fresh.ask('GET', `/owner/registrations?limit=2&before=${first.body.next}`);
    expect(rest.body).toMatchObject({ registrations: [{ agent_name: 'listed 0', may_decide: true }], next: null });
    // Otherwise a program that reads page by page would begin again when the last registration of its page was deleted.
    const deleted = await fresh.ask('GET', `/owner/registrations?before=${randomUUID()}`);
    expect(deleted.body).toEqual({ registrations: [], next: null });
    ids.push(...[...first.body.registrations, ...rest.body.registrations].map(({ id }: { id: string }) => id));
    const approval = await fresh.ask('POST', `/owner/registrations/${ids[0]}/approve`, {});
    expect(approval.body).toMatchObject({
      id: ids[0],
      status: 'approved',
      may_decide: false,
      decided_by: fresh.owner.id,
      decided_by_email: fresh.owner.email,
      expires_in_seconds: null,
    });
    expect((await fresh.ask('POST', `/owner/registrations/${ids[1]!.toUpperCase()}/reject`)).body.status).toBe(
      'rejected',
    );
    const one = await fresh.ask('GET', `/owner/registrations/${ids[0]}`);
    expect(one.body).toMatchObject({ status: 'approved', granted: DEMO });
    for (const text of [one.text, approval.text, first.text]) expect(text).not.toMatch(/reg_|token|private|BEGIN/);
    const pending = await fresh.ask('GET', '/owner/registrations?status=pending');
    expect(pending.body.registrations.map(({ id }: { id: string }) => id)).toEqual([ids[2]]);
    for (const verb of ['approve', 'reject'])
      expectEnvelope(await fresh.ask('POST', `/owner/registrations/x/${verb}`), 404, 'not_found');
    expectEnvelope(await fresh.ask('GET', '/owner/registrations/x'), 404, 'not_found');
    expectEnvelope(await organisation.ask('GET', `/owner/registrations/${ids[0]}`), 404, 'not_found');
    expectEnvelope(await fresh.ask('GET', '/owner/registrations?status=x'), 400, 'invalid_request');
  });

  onOne.each<[string, Record<string, unknown>]>([
    ['no owner', { owner_id: undefined }],
    ['an owner that is not a UUID', { owner_id: 'ann' }],
    ['no name', { agent_name: undefined }],
    ['an empty name', { agent_name: '' }],
    ['a name of 10 KB', { agent_name: 'x'.repeat(10_240) }],
    ['a name with a line break', { agent_name: 'a\nb' }],
    ['a name with an escape', { agent_name: 'a\u001b[2Jb' }],
    ['a name with NUL', { agent_name: 'a\0b' }],
    ['a name with a lone surrogate', { agent_name: 'a\ud800' }],
    ['a description of 10 KB', { agent_description: 'x'.repeat(10_240) }],
    ['no scopes', { requested_scopes: undefined }],
    ['scopes as a string', { requested_scopes: 'demo:read' }],
    [
      '10 000 platforms',
      { requested_scopes: Array.from({ length: 10_000 }, () => ({ platformId: 'a', scopes: ['b'] })) },
    ],
    [
      '10 000 scopes',
      { requested_scopes: [{ platformId: 'a', scopes: Array.from({ length: 10_000 }, (_, i) => `s${i}`) }] },
    ],
    [
      '21 platforms',
      { requested_scopes: Array.from({ length: 21 }, (_, i) => ({ platformId: `p${i}`, scopes: ['b'] })) },
    ],
    ['101 scopes', { requested_scopes: [{ platformId: 'a', scopes: Array.from({ length: 101 }, (_, i) => `s${i}`) }] }],
    ['a platform without scopes', { requested_scopes: [{ platformId: 'a', scopes: [] }] }],
    ['a scope of 10 KB', { requested_scopes: [{ platformId: 'a', scopes: ['x'.repeat(10_240)] }] }],
    ['a name with a space before it', { agent_name: ' a' }],
    ['__proto__', { requested_scopes: [JSON.parse('{"__proto__":{},"platformId":"a","scopes":["b"]}')] }],
  ])('RG-08 %s: 400, and nothing is stored', async (_what, body) => {
    const answer = await register(body);
    expectEnvelope(answer, 400, 'invalid_request');
    expect(answer.text.length).toBeLessThan(1_000);
    expect((await organisation.ask('GET', '/owner/registrations')).body.registrations).toEqual([]);
  });

  onOne('client metadata that means nothing here is ignored (RFC 7591 section 2)', async () => {
    await expectStatus(202, register({ client_uri: 'https://agent.example', grant_types: ['x'], role: 'admin' }));
  });

  onOne('413 for more than 1 MiB', async () => {
    expectEnvelope(await register({ agent_description: 'x'.repeat(1024 * 1024) }), 413, 'payload_too_large');
  });

  onOne('RG-08 markup and marks of direction in a name are kept as what they are, for whoever shows them', async () => {
    const agent_name = '<img src=x onerror=alert(1)> \u202Egnp.exe';
    const { token } = await registered({ agent_name });
    const [one] = (await organisation.ask('GET', '/owner/registrations')).body.registrations;
    expect(one.agent_name).toBe(agent_name);
    const { headers } = await organisation.ask('GET', '/owner/registrations');
    expect(headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect((await decide('approve', token)).status).toBe(200);
  });

  onOne(
    'RG-07 nobody learns who is an owner: the same answers for nobody’s id, from the first to the last',
    async () => {
      const shapeOf = ({ status, body }: Answer) => [
        status,
        Object.keys(body).sort(),
        body.status,
        body.expires_in,
        body.scope,
      ];
      const [mine, nobody] = [await register(), await register({ owner_id: NOBODY })];
      expect(shapeOf(nobody)).toEqual(shapeOf(mine));
      expect(nobody.body.registration_token).toHaveLength(mine.body.registration_token.length);
      const tokens = [mine, nobody].map(({ body }) => body.registration_token as string);
      const both = async (ask: (token: string) => Promise<Answer>) => {
        const [a, b] = [await ask(tokens[0]!), await ask(tokens[1]!)];
        const { correlation_id: _a, ...left } = a.body;
        const { correlation_id: _b, ...right } = b.body;
        expect([b.status, right]).toEqual([a.status, left]);
      };
      await both(statusOf);
      await both(claim);
      const other = await world.organisation();
      await both((token) => other.ask('POST', `/v1/register/approve/${token}`));
      await both((token) => other.ask('POST', `/v1/register/reject/${token}`));
      // For an unknown owner nothing that was sent about the agent is stored.
      const rows = await world.db.selectFrom('registrations').selectAll().execute();
      const decoy = rows.find(({ organisation_id }) => organisation_id === null)!;
      expect(decoy).toMatchObject({ agent_name: '', requested_scopes: '[]', source: '127.0.0.1', private_key: null });
      world.clock.skewMs = 24 * HOUR_MS + 1_000;
      await both(statusOf);
      const { broker, services } = world.running;
      await expireRegistrations(broker, services.changes, broker.clock());
      await both(statusOf);
      await both(claim);
      world.clock.skewMs = 48 * HOUR_MS + 60_000;
      await housekeepingOf(world);
      await both(statusOf);
      expect(await statusOf(tokens[1]!)).toMatchObject({ status: 404, body: { error: 'not_found' } });
    },
  );

  const openFrom = (source: string, ownerId: string = organisation.owner.id) => {
    const { broker, services } = world.running;
    const asking = { ownerId, name: 'x', description: null, scopes: [], source: clientKey(source) };
    return openRegistration(broker, services.changes, asking);
  };

  test('RG-07 at most 5 of one network are pending at an owner, real or not; a decision frees a slot, after ten rejections none is free for a day', async () => {
    for (const owner_id of [organisation.owner.id, NOBODY]) {
      const tokens: string[] = [];
      for (let i = 0; i < 5; i++) tokens.push((await registered({ owner_id })).token);
      const sixth = await register({ owner_id });
      expectEnvelope(sixth, 429, 'too_many_open_requests');
      expect(sixth.body.detail).toMatch(/^5 registrations from your address wait at this owner already/);
      // No slot becomes free before the first of them expires.
      const seconds = Number(sixth.headers.get('retry-after'));
      expect(seconds).toBeGreaterThan(24 * 3600 - 60);
      expect(seconds).toBeLessThanOrEqual(24 * 3600);
      expect((await register({ owner_id }, '127.0.0.110')).status).toBe(202);
      if (owner_id === NOBODY) continue;
      expect((await decide('approve', tokens[0]!)).status).toBe(200);
      const rejectAll = () => organisation.ask('POST', '/owner/registrations/reject', { network: '127.0.0.1' });
      expect((await rejectAll()).body.rejected).toHaveLength(4);
      for (let i = 4; i < 10; i++) {
        expect(await openFrom('127.0.0.1')).toMatchObject({ kind: 'opened' });
        await rejectAll();
      }
      expect(await openFrom('127.0.0.1')).toMatchObject({ kind: 'too_many', whose: 'network', limit: 10 });
    }
    world.clock.skewMs = 24 * HOUR_MS + 1_000;
    expect((await openFrom('127.0.0.1')).kind, 'what is over leaves room').toBe('opened');
  });

  onOne(
    'RG-07 whoever fills the list of an owner, real or not, from a few networks keeps nobody out, and pushes nobody out',
    async () => {
      for (const ownerId of [organisation.owner.id, NOBODY]) {
        const honest = await openFrom('192.0.2.1', ownerId);
        for (let i = 0; i < 99; i++)
          expect(await openFrom(`198.51.100.${Math.floor(i / 5)}`, ownerId)).toMatchObject({ kind: 'opened' });
        // Each network keeps at least one: newcomers displace those of the networks with the most.
        for (let i = 0; i < 79; i++)
          expect(await openFrom(`203.0.113.${i}`, ownerId), `newcomer ${i}`).toMatchObject({ kind: 'opened' });
        expect(await openFrom('198.51.100.0', ownerId)).toMatchObject({ kind: 'too_many', whose: 'owner', limit: 100 });
        expect(await openFrom('203.0.113.79', ownerId)).toMatchObject({ kind: 'too_many', whose: 'owner', limit: 100 });
        const open = await listOpenRegistrations(world.db, ownerId, Date.now());
        expect(new Set(open.map(({ source }) => source)).size).toBe(100);
        const token = honest.kind === 'opened' ? honest.token.reveal() : '';
        expect((await statusOf(token)).body.status).toBe('pending');
      }
    },
  );

  test('a registration that was displaced by one of another network reads `expired`, with the time of that', async () => {
    const first: string[] = [];
    for (let i = 0; i < 101; i++) {
      // With equal times any of them may be displaced.
      world.clock.skewMs = i;
      const one = await openFrom(`198.51.100.${Math.floor(i / 5)}`);
      if (one.kind === 'opened' && i < 5) first.push(one.token.reveal());
    }
    const statuses = await Promise.all(first.map(async (token) => (await statusOf(token)).body.status));
    expect(statuses).toEqual(['pending', 'pending', 'pending', 'pending', 'expired']);
    const { text } = await send(`${world.running.baseUrl}/v1/register/stream/${first.at(-1)}`, {});
    const told = JSON.parse(/^data: (.*)$/m.exec(text)![1]!);
    expect(told).toEqual({ status: 'expired', expires_at: expect.any(String) });
    const [listed] = (await organisation.ask('GET', '/owner/registrations?status=expired')).body.registrations;
    expect(listed.expires_at).toBe(told.expires_at);
    expect(Date.parse(told.expires_at)).toBeLessThanOrEqual(world.running.broker.clock());
  });

  test('RG-07 an owner rejects all registrations of one network together: no others, each recorded', async () => {
    const approver = await organisation.addOwner('approver');
    const reject = (network: string, by?: OwnerTable) =>
      organisation.ask('POST', '/owner/registrations/reject', { network }, by);
    for (const host of ['1:1::1', '1:2::1', '1:2::1', '2:1::1']) await openFrom(`2001:db8:${host}`);
    await openFrom('2001:db8:1:3::1', approver.id);
    const waiting = async () =>
      (await organisation.ask('GET', '/owner/registrations?status=pending')).body.registrations.map(
        ({ id, network }: { id: string; network: string }) => ({ id, network }),
      );
    const theirs = (await waiting()).filter(({ network }: { network: string }) => network === '2001:db8:1::/48');
    expect(theirs).toHaveLength(4);
    const mine = await world.db
      .selectFrom('registrations')
      .select('id')
      .where('owner_id', '=', approver.id)
      .executeTakeFirstOrThrow();
    const own = await reject('2001:db8:1::/48', approver);
    expect(own.body, own.text).toMatchObject({ remaining: false, rejected: [mine.id] });
    const { body } = await reject('2001:db8:1::/48');
    expect(body.rejected.toSorted()).toEqual(
      theirs
        .map(({ id }: { id: string }) => id)
        .filter((id: string) => id !== mine.id)
        .toSorted(),
    );
    expect(await waiting()).toMatchObject([{ network: '2001:db8:2::/48' }]);
    expect((await reject('2001:db8:1::/48')).body).toMatchObject({ rejected: [], remaining: false });
    const events = '/owner/audit?reason=registration_rejected&kind=event';
    const recorded: unknown[] = [];
    for (const row of (await organisation.ask('GET', events)).body.rows) {
      const { receipt } = (await organisation.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
      recorded.push((await verifyReceipt(world, receipt)).payload.change.registration);
    }
    for (const { id } of theirs) expect(recorded.filter((one) => one === id)).toHaveLength(1);
    expectEnvelope(await reject('2001:db8:2::/48', await organisation.addOwner('viewer')), 403, 'forbidden');
  });

  onOne('all addresses of one IPv6 /48 count as one network', async () => {
    for (let i = 1; i <= 5; i++) expect(await openFrom(`2001:db8:7:${i}::1`)).toMatchObject({ kind: 'opened' });
    expect(await openFrom('2001:db8:7:6::1')).toMatchObject({ kind: 'too_many', whose: 'network' });
    expect(await openFrom('2001:db8:8:1::1')).toMatchObject({ kind: 'opened' });
  });

  test('registrations for unknown owners are limited: the oldest of these are deleted first', async () => {
    const mine = await registered();
    const first = await registered({ owner_id: randomUUID() });
    world.clock.skewMs = 1_000;
    const rest = [await registered({ owner_id: randomUUID() }), await registered({ owner_id: randomUUID() })];
    await capRegistrationsOfNobody(world.db, 2);
    expect(await statusOf(first.token)).toMatchObject({ status: 404, body: { error: 'not_found' } });
    for (const { token } of [mine, ...rest]) expect((await statusOf(token)).status).toBe(200);
  });

  test('removing an owner removes the owner’s registrations', async () => {
    const leaving = await organisation.addOwner('approver');
    const { token } = await registered({ owner_id: leaving.id });
    expect((await organisation.ask('DELETE', `/owner/owners/${leaving.id}`)).status).toBe(200);
    expectEnvelope(await statusOf(token), 404, 'not_found');
  });

  /** Runs the minutely jobs. */
  async function housekeepingOf({ running: { broker } }: World): Promise<void> {
    let done = false;
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    const house = startHousekeeping(broker, {
      last: async () => {
        done = true;
      },
    });
    vi.advanceTimersByTime(60_000);
    vi.useRealTimers();
    await vi.waitUntil(() => done, { timeout: 20_000 });
    await house.stop();
  }
});

describe('limits of registration', () => {
  test('429 after 10 registrations, and after 60 status requests, in a minute from an address (RG-04, RG-07)', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.1' });
    const register = (from: string) =>
      send(`${world.running.baseUrl}/v1/register`, {
        ...jsonPost({ owner_id: NOBODY, agent_name: 'x', requested_scopes: [] }),
        from,
      });
    expect((await register('127.0.0.1')).status).toBe(202);
    const limited = await register('127.0.0.1');
    expectEnvelope(limited, 429, 'rate_limited');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await register('127.0.0.2')).status).toBe(202);
    const guess = (what: string) =>
      send(`${world.running.baseUrl}/v1/register/${what}/${mintToken('registration').token.reveal()}`, {
        from: '127.0.0.1',
      });
    for (let i = 0; i < 6; i++)
      expect(await guess(i % 2 ? 'status' : 'claim-key')).toMatchObject({ status: 404, body: { error: 'not_found' } });
    for (const what of ['status', 'claim-key']) expectEnvelope(await guess(what), 429, 'rate_limited');
    for (let i = 0; i < 6; i++)
      expect(await guess('stream')).toMatchObject({ status: 404, body: { error: 'not_found' } });
    expectEnvelope(await guess('stream'), 429, 'rate_limited');
  });
});
