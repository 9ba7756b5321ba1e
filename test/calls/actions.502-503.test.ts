import { createServer, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { sql } from 'kysely';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BREAKER_LIMITS } from '../../broker/policy/breaker.ts';
import type { Answer, TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope, expectReportHint, withoutCalls } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, type Organisation, READ, startWorld, type World } from '../world/world.ts';

const WRITE = { ...READ, method: 'POST', scope: 'demo:write', data: { a: 1 } };
const HELD = { ...READ, endpoint: '/items/1', method: 'DELETE', scope: 'demo:delete' };
const RULES = [
  { effect: 'allow', methods: ['GET', 'POST'] },
  { effect: 'require_approval', methods: ['DELETE'] },
];

describe.each(ONE_STORE)(`POST /v1/actions answers 502 on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let server: Server;
  let onRequest: (socket: Socket, request: string) => void = () => {};
  beforeAll(async () => {
    server = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (chunk) => onRequest(socket, chunk.toString('latin1')));
    });
    const port = await listenOnLoopback(server);
    const address = `127.0.0.1:${port}`;
    world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: `${address},127.0.0.1:1` });
    organisation = await world.organisation();
    await organisation.platform({ manifest: { base_url: `http://${address}/v1` } });
    await organisation.platform({ id: 'away', manifest: { base_url: 'http://127.0.0.1:1' } });
    await organisation.platform({ id: 'private', manifest: { base_url: 'https://127.0.0.1:8443' } });
    await organisation.platform({ id: 'itself', manifest: { base_url: world.running.baseUrl } });
    agent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { demo: {}, away: {}, private: {}, itself: {} },
    });
    return () => new Promise<void>((resolve) => server.close(() => resolve()));
  });
  beforeEach(() => world.forgive());

  /** Expects a 502 with fixed text and the known outcome, a row and a receipt. */
  async function unreachable(answer: Answer, code: string, outcome: 'unknown' | 'not_sent', by = agent) {
    expectEnvelope(answer, 502, 'upstream_unreachable');
    expectReportHint(answer, 'upstream_unreachable');
    expect(answer.body).toMatchObject({ code, outcome });
    expect(answer.text).not.toMatch(/CANARY|127\.0\.0\.1|ECONN|undici/);
    const { row, payload } = await evidenceOf(world, by, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable', upstream_status: null });
    expect(JSON.parse(row.flags!)).toMatchObject({ code, outcome });
    expect(payload.upstream_status).toBeNull();
  }

  test.each<[string, string]>([
    ['away', 'connect_failed'],
    ['private', 'address_refused'],
    ['itself', 'address_refused'],
  ])('SS-02 SS-08 a platform that is %s: not sent', async (platform, code) => {
    for (const call of [READ, WRITE]) {
      const answer = await withoutCalls(world, () => agent.act({ ...call, platform }));
      await unreachable(answer, code, 'not_sent');
      expect(answer.body.detail).not.toContain('may have been made');
    }
  });

  test.each<[string, string, (socket: Socket) => void]>([
    ['resets', 'connection_lost', (socket) => socket.resetAndDestroy()],
    ['closes without a word', 'connection_lost', (socket) => socket.end()],
    [
      'ends in the middle',
      'connection_lost',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"a"'),
    ],
    [
      'ends a chunked body in the middle',
      'connection_lost',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab'),
    ],
    ['answers garbage', 'broken_answer', (socket) => socket.end('\0\x01\x02 garbage\r\n\r\n')],
    ['echoes the request as garbage', 'broken_answer', (socket) => socket.end(`HTTP/1.1 2${CANARY}\r\n\r\n`)],
    ['answers status 600', 'broken_answer', (socket) => socket.end('HTTP/1.1 600 X\r\ncontent-length: 2\r\n\r\n{}')],
    ['floods with 1xx', 'broken_answer', (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(40))],
    [
      'sends a header of 1 MB',
      'too_large',
      (socket) => socket.write(`HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(1_000_000)}\r\n\r\n`),
    ],
    [
      'announces 1 GB',
      'too_large',
      (socket) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n{}'),
    ],
    [
      'sends a gzip bomb',
      'too_large',
      (socket) => {
        const bomb = gzipSync(Buffer.alloc(12 * 1024 * 1024));
        socket.write(`HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`);
        socket.end(bomb);
      },
    ],
    [
      'declares a wrong content coding',
      'broken_answer',
      (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}'),
    ],
  ])('BD-15 an upstream that %s: the outcome of a write is unknown', async (_name, code, answerWith) => {
    onRequest = answerWith;
    const read = await agent.act(READ);
    await unreachable(read, code, 'unknown');
    expect(read.body.detail).not.toContain('may have been made');
    const write = await agent.act(WRITE);
    await unreachable(write, code, 'unknown');
    expect(write.body.detail).toContain('may have been made');
  });

  test('C12 an upstream that never answers: the outcome is unknown, the call is not retried, and the breaker counts it', async () => {
    const { outbound } = world.running.broker;
    const { send } = outbound;
    // Would take half a minute otherwise.
    outbound.send = (request) => send({ ...request, idleTimeoutMs: 50 });
    const silent = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { demo: {} },
    });
    const { strikes } = BREAKER_LIMITS.breaker_upstream_failure;
    let asked = 0;
    onRequest = () => asked++;
    try {
      const answers = await Promise.all(Array.from({ length: strikes }, () => silent.act(WRITE)));
      for (const answer of answers) {
        await unreachable(answer, 'timeout', 'unknown', silent);
        expect(answer.body.detail).toContain('may have been made');
      }
    } finally {
      outbound.send = send;
    }
    expect(asked).toBe(strikes);
    expect((await silent.act(WRITE)).body.reason).toBe('circuit_breaker_open');
    expect(asked).toBe(strikes);
  });

  test('CX-08 binary data that contains the credential is withheld completely', async () => {
    const body = Buffer.concat([Buffer.from([0x89, 0x50, 0]), Buffer.from(CANARY)]);
    onRequest = (socket) => {
      socket.write(`HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: ${body.length}\r\n\r\n`);
      socket.end(body);
    };
    const answer = await agent.act(READ);
    expectEnvelope(answer, 502, 'upstream_response_blocked');
    expect(answer.text).not.toContain('CANARY');
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'blocked', reason: 'upstream_response_blocked', upstream_status: 200 });
  });

  test('the same server with a valid answer (counter-example)', async () => {
    onRequest = (socket) =>
      socket.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}');
    expect((await agent.act(WRITE)).body).toMatchObject({ data: {}, _meta: { upstream_status: 200 } });
  });
});

describe.each(ONE_STORE)(`POST /v1/actions answers 503 on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let repair: (() => Promise<void>) | undefined;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent({ rules: RULES });
  });
  afterEach(async () => {
    await repair?.();
    repair = undefined;
  });

  function unavailable(answer: Answer, error: string, retryAfter: string | null = '5'): void {
    expectEnvelope(answer, 503, error);
    expect(answer.headers.get('retry-after')).toBe(retryAfter);
    expect(answer.body).not.toHaveProperty('data');
  }

  test.each<[string, Record<string, unknown>, number]>([
    ['a write', WRITE, 200],
    ['a refusal', { ...READ, scope: 'demo:none' }, 403],
    ['a malformed call', { ...READ, endpoint: '//x' }, 400],
    ['a malformed body', { ...READ, nonsense: 1 }, 400],
    ['a held call', HELD, 202],
  ])('BD-07 C10 %s that cannot be recorded answers 503 without effect', async (_name, call, otherwise) => {
    const before = await world.db.selectFrom('approvals').select('id').execute();
    repair = await refuseAuditRows(world);
    const answer = await withoutCalls(world, () => agent.act(call));
    unavailable(answer, 'audit_unavailable');
    expect(answer.body.detail).toContain('nothing was sent');
    expect(await world.db.selectFrom('approvals').select('id').execute()).toEqual(before);
    await repair();
    repair = undefined;
    expect((await agent.act(call)).status).toBe(otherwise);
  });

  test('BD-07 the answer of a read whose outcome cannot be recorded is withheld', async () => {
    repair = await refuseAuditRows(world);
    world.upstream.seen.length = 0;
    const answer = await agent.act({ ...READ, endpoint: '/items/withheld' });
    unavailable(answer, 'audit_unavailable', null);
    expect(world.upstream.seen).toHaveLength(1);
    expect(answer.body.detail).toContain('may have been made');
    expect(answer.text).not.toContain('withheld"');
  });

  test('C11 the answer of a write whose outcome cannot be recorded is withheld; after a restart its row is closed with a receipt, and it is not repeated', async () => {
    repair = await refuseAuditRows(world, 'final');
    world.upstream.seen.length = 0;
    const answer = await agent.act(WRITE, { 'idempotency-key': 'lost' });
    unavailable(answer, 'audit_unavailable', null);
    expect(answer.body.detail).toContain('may have been made');
    const again = await agent.act(WRITE, { 'idempotency-key': 'lost' });
    expectEnvelope(again, 409, 'idempotency_in_progress');
    expect(again.headers.get('retry-after')).toBe('2');
    await repair();
    repair = undefined;
    await world.restart();
    const row = (await listAuditRows(world.db, organisation.id, { limit: 50 })).find(
      ({ id }) => id === again.body.audit_id,
    )!;
    expect(row).toMatchObject({ state: 'final', result: 'errored', reason: 'outcome_unknown', method: 'POST' });
    await evidenceOf(world, agent, row.id);
    expectEnvelope(await agent.act(WRITE, { 'idempotency-key': 'lost' }), 409, 'idempotency_outcome_unknown');
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('KEY-01 a credential moved to another row cannot be opened, and nothing is sent', async () => {
    await organisation.platform({ id: 'moved' });
    const granted = await organisation.agent({ grants: { moved: {} } });
    const call = { ...READ, platform: 'moved' };
    expect((await granted.act(call)).status).toBe(200);
    const from = sql`(select credential from connections where platform_id = 'demo' and is_default = 1 and organisation_id = ${organisation.id})`;
    await sql`update connections set credential = ${from} where platform_id = 'moved' and organisation_id = ${organisation.id}`.execute(
      world.db,
    );
    const answer = await withoutCalls(world, () => granted.act(call));
    expectEnvelope(answer, 503, 'credential_unreadable');
    expect(answer.text).not.toMatch(/CANARY|seal/i);
    const { row } = await evidenceOf(world, granted, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'errored', reason: 'credential_unreadable' });
  });
});
