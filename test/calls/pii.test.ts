/** The PII flags in rows and receipts say what was scanned, for every outcome of a call. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { payloadText1 } from '../../broker/audit/receipt-format-1.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const DATA = { to: 'ann@acme.example', text: 'card 4111 1111 1111 1111 iban DE89370400440532013000' };
const WRITE = { ...READ, method: 'PATCH', endpoint: '/items/1', scope: 'demo:write', data: DATA };
const ALL = ['email', 'card', 'iban'];

describe.each(STORES)(`PII flags on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  const world = givenWorld(store);
  const organisation = shared(() =>
    world.demoOrganisation({ manifest: { recipients: { 'PATCH /items/*': ['/to'] } } }),
  );
  beforeAll(async () => {
    const policy = await organisation.policy([
      { effect: 'allow' },
      { effect: 'require_approval', endpoints: ['/items/held'] },
      { effect: 'deny', endpoints: ['/items/denied'] },
    ]);
    agent = await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read', 'demo:write'] } } });
  });
  beforeEach(() => {
    world.upstream.answer = (_request, response) =>
      response.setHeader('content-type', 'application/json').end('{"id":7}');
    return world.forgive();
  });

  const flagsOf = async (answer: Answer, of = agent) => {
    const { row, payload } = await evidenceOf(world, of, auditIdOf(answer));
    expect(JSON.stringify(payload)).not.toMatch(/ann@|4111 ?1111|DE8937/);
    expect(row.pii === null ? { request: null, response: null } : JSON.parse(row.pii)).toEqual(payload.pii);
    return [answer.status, payload.pii.request, payload.pii.response];
  };

  test('an answered call has flags of the request and of the answer', async () => {
    expect(await flagsOf(await agent.act(WRITE))).toEqual([200, ALL, []]);
    world.upstream.answer = (_request, response) =>
      response.setHeader('content-type', 'text/plain').end('to bob@acme.example');
    expect(await flagsOf(await agent.act(READ))).toEqual([200, [], ['email']]);
  });

  test('the query and headers are scanned', async () => {
    expect(await flagsOf(await agent.act({ ...READ, endpoint: '/items?email=bob%40acme.example' }))).toEqual([
      200,
      ['email'],
      [],
    ]);
    expect(await flagsOf(await agent.act({ ...READ, endpoint: '/items?phone=%2B4930901820123' }))).toEqual([
      200,
      ['phone'],
      [],
    ]);
    expect(await flagsOf(await agent.act({ ...READ, headers: { 'X-Person': 'bob@acme.example' } }))).toEqual([
      200,
      ['email'],
      [],
    ]);
  });

  test('a call that broke off after it was sent has flags of the request', async () => {
    world.upstream.answer = (_request, response) => response.socket!.destroy();
    expect(await flagsOf(await agent.act(WRITE))).toEqual([502, ALL, null]);
  });

  test('a call whose credential was refused has flags', async () => {
    world.upstream.answer = (_request, response) => response.writeHead(401).end('ask bob@acme.example');
    expect(await flagsOf(await agent.act(WRITE))).toEqual([409, ALL, ['email']]);
  });

  test('a held call, a denied call, and one to a forbidden recipient have flags', async () => {
    expect(await flagsOf(await agent.act({ ...WRITE, endpoint: '/items/held' }))).toEqual([202, ALL, null]);
    expect(await flagsOf(await agent.act({ ...WRITE, endpoint: '/items/denied' }))).toEqual([403, ALL, null]);
    const constraints = JSON.stringify({ recipients: ['@other.example'] });
    const other = await organisation.agent({ grants: { demo: { scopeList: ['demo:write'], constraints } } });
    expect(await flagsOf(await other.act(WRITE), other)).toEqual([403, ALL, null]);
  });

  test('the replay of an approved call has the flags of the held call', async () => {
    const held = await agent.act({ ...WRITE, endpoint: '/items/held' });
    await organisation.approve(held.body.approval_id);
    const done = await agent.get(`/v1/approvals/${held.body.approval_id}?wait=10`);
    expect(done.body.result?.status, done.text).toBe(200);
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=10')).body;
    const replayed = rows.find(
      (row: { result: string; approval_id: string }) => row.result === 'allowed' && row.approval_id,
    );
    expect(replayed.pii).toEqual({ request: ALL, response: [] });
    const decision = rows.find((row: { reason: string }) => row.reason === 'approval_approved');
    expect(decision.pii).toBeNull();
  });

  test('binary and withheld answers are not scanned', async () => {
    world.upstream.answer = (_request, response) =>
      response.setHeader('content-type', 'image/png').end(Buffer.from([1, 2, 3]));
    expect(await flagsOf(await agent.act(WRITE))).toEqual([200, ALL, null]);
    world.upstream.answer = (request, response) =>
      response
        .setHeader('content-type', 'image/png')
        .end(Buffer.from(`\0 bob@acme.example ${request.headers.authorization}`));
    expect(await flagsOf(await agent.act(WRITE))).toEqual([502, ALL, null]);
  });

  test('a body that is not read has no flags, unless something was found outside of it', async () => {
    const raw = async (path: string, type: string) => {
      const body = JSON.stringify(DATA);
      await expectStatus(200, rawClient(() => agent)('PATCH', path, { body, headers: { 'content-type': type } }));
      return (await organisation.ask('GET', '/owner/audit?limit=1')).body.rows[0].pii?.request ?? null;
    };
    expect(await raw('/proxy/demo-main/items/1', 'text/plain')).toBeNull();
    expect(await raw('/proxy/demo-main/items/1', 'application/json')).toEqual(ALL);
    expect(await raw('/proxy/demo-main/items/1?to=bob%40acme.example', 'text/plain')).toEqual(['email']);
  });

  test('a malformed request has no flags', async () => {
    expect(await flagsOf(await agent.act({ ...WRITE, method: 'BREW' }))).toEqual([400, null, null]);
    expect(await flagsOf(await agent.act({ ...WRITE, endpoint: '/items/../1?x=bob%40acme.example' }))).toEqual([
      400,
      ALL,
      null,
    ]);
  });

  test('a receipt of an old row without flags says that nothing was scanned, and one with flags repeats them', async () => {
    const { row } = await evidenceOf(world, agent, auditIdOf(await agent.act(READ)));
    for (const pii of [null, '{"request":["email"],"response":[]}']) {
      const old = { ...row, pii };
      const { pii: shown } = JSON.parse(payloadText1(old, 'did:web:x'));
      expect(shown).toEqual(pii === null ? { request: null, response: null } : JSON.parse(pii));
    }
  });
});
