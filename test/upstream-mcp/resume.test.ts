/**
 * Tool calls whose stream ends before the result has arrived, and is resumed; and calls whose result is no longer awaited, which are cancelled at the
 * server.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { type JSONRPCMessage, McpServer } from '@modelcontextprotocol/server';
import { decodeJwt } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { resumeStream } from '../../broker/egress/mcp/resume.ts';
import { unreachable } from '../../broker/egress/unreachable.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { CANARY, shared, startWorld } from '../world/world.ts';
import { connected, SEARCH } from './connected.ts';

type Does = (response: ServerResponse, id: string, request: IncomingMessage) => void | Promise<void>;

let agent: TestAgent;
/** The server's behaviour for a tool call, and for the requests that resume its stream: one for each, the last one repeatedly. */
let called: Does;
let resumed: Does[];
/** Each request about a tool call: its method, and the relevant headers. */
let seen: { method: string; from: unknown; session: unknown; version: unknown; accept: unknown; key: unknown }[];
let attested: string[];
/** Whether the server supports requests without a handshake. */
let isStateless: boolean;
/** The id of the newest tool call, and the cancellations that the server received for it. */
let callId: string;
let cancelled: { requestId: unknown; session: unknown }[];

const open = (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/event-stream' });
const RESULT = { content: [{ type: 'text', text: 'found' }], n: 1 };
const answerTo = (id: string, result: object = RESULT) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
/** The event with which a server says that its stream can be resumed, and after which id. */
const priming = (id: string) => `id: ${id}\nretry: 100\ndata: \n\n`;
/** Ends the stream regularly, after such an event. */
const endsAfter =
  (id: string): Does =>
  (response) =>
    void open(response).end(priming(id));
/** Breaks the connection after such an event. */
const breaksAfter =
  (id: string): Does =>
  async (response) => {
    open(response).write(priming(id));
    await sleep(50);
    response.destroy();
  };
const answers: Does = (response, id) => void open(response).end(answerTo(id));
const status =
  (code: number, body = ''): Does =>
  (response) =>
    void response.writeHead(code, { 'content-type': 'application/json' }).end(body);

const world = shared(() => startWorld());
beforeAll(async () => {
  world.upstream.answer = async (request, response, body) => {
    const { headers } = request;
    const note = () => {
      seen.push({
        method: String(request.method),
        from: headers['last-event-id'],
        session: headers['mcp-session-id'],
        version: headers['mcp-protocol-version'],
        accept: headers.accept,
        key: headers.authorization,
      });
      attested.push(String(headers['x-svc-attestation']));
    };
    if (request.method === 'GET') {
      note();
      const does = resumed.length > 1 ? resumed.shift() : resumed[0];
      return await does?.(response, callId, request);
    }
    // The end of the session, when the broker stops.
    if (request.method === 'DELETE') return void response.writeHead(200).end();
    const { id, method, params } = JSON.parse(body);
    if (method === 'tools/call') {
      callId = id;
      note();
      return await called(response, id, request);
    }
    if (method === 'notifications/cancelled') {
      cancelled.push({ requestId: params.requestId, session: headers['mcp-session-id'] });
      return void response.writeHead(202).end();
    }
    if (method === 'tools/list' && params._meta && !isStateless) return void response.writeHead(400).end();
    if (method === 'notifications/initialized') return void response.writeHead(202).end();
    const tool = { name: 'search_issues', inputSchema: { type: 'object' } };
    const greeting = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    };
    response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'the-session' });
    response.end(
      JSON.stringify({ jsonrpc: '2.0', id, result: method === 'initialize' ? greeting : { tools: [tool] } }),
    );
  };
  const manifest = { attestation: 'header' };
  ({ agent } = await connected(world, { url: `${world.upstream.url}/mcp` }, manifest));
});
beforeEach(async () => {
  seen = [];
  attested = [];
  isStateless = false;
  cancelled = [];
  called = endsAfter('e1');
  resumed = [answers];
  await world.forgive();
});
const methods = () => seen.map(({ method, from }) => (method === 'GET' ? `GET ${from}` : method));
const unknown = async (code: string) => {
  const answer = await agent.act(SEARCH);
  expect([answer.status, answer.body.code, answer.body.outcome], answer.text).toEqual([502, code, 'unknown']);
  return answer;
};

describe('a resumable stream', () => {
  test.each<[string, Does, string[]]>([
    ['ended', endsAfter('e1'), ['POST', 'GET e1']],
    ['broke', breaksAfter('e1'), ['POST', 'GET e1']],
    [
      'broke after progress',
      async (response) => {
        const notice = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } };
        open(response).write(`${priming('e1')}id: e2\ndata: ${JSON.stringify(notice)}\n\n`);
        await sleep(50);
        response.destroy();
      },
      ['POST', 'GET e2'],
    ],
  ])('that %s: the tool is called once, and its result returned', async (_, does, asked) => {
    called = does;
    const answer = await agent.act(SEARCH);
    expect([answer.status, answer.body.data], answer.text).toEqual([200, RESULT]);
    expect(methods()).toEqual(asked);
    const [call, get] = seen;
    const same = { session: 'the-session', version: '2025-11-25', key: `Bearer ${CANARY}` };
    expect(call).toMatchObject(same);
    expect(get).toMatchObject({ ...same, accept: 'text/event-stream' });
    const { row } = await evidenceOf(world, agent, answer.body._meta.audit_id);
    expect(row).toMatchObject({ result: 'allowed', upstream_status: 200 });
  });

  test('is resumed each time it ends, from its last event, after the server’s retry delay', async () => {
    resumed = [endsAfter('e2'), endsAfter('e3'), endsAfter('e3'), answers];
    const begun = performance.now();
    const answer = await agent.act(SEARCH);
    expect(answer.body.data, answer.text).toEqual(RESULT);
    expect(methods()).toEqual(['POST', 'GET e1', 'GET e2', 'GET e3', 'GET e3']);
    expect(performance.now() - begun).toBeGreaterThan(350);
  });

  test('is resumed again while the server restarts', async () => {
    resumed = [status(503), status(429), (response) => void response.destroy(), answers];
    const answer = await agent.act(SEARCH);
    expect(answer.body.data, answer.text).toEqual(RESULT);
    expect(methods()).toHaveLength(5);
  });

  test('is resumed with an attestation of its own, because servers accept none twice', async () => {
    await agent.act(SEARCH);
    const [ofCall, ofGet] = attested.map((token) => decodeJwt(token));
    expect(ofCall?.jti).toBeTruthy();
    expect(ofGet?.jti).toBeTruthy();
    expect(ofGet?.jti).not.toBe(ofCall?.jti);
  });

  test('has the credential redacted from its result, too', async () => {
    resumed = [(response, id) => void open(response).end(answerTo(id, { content: [], echoed: `x ${CANARY}` }))];
    const answer = await agent.act(SEARCH);
    expect(answer.text).not.toContain(CANARY);
  });

  test(
    'is not resumed after the agent loses access, and the call is cancelled at the server',
    async () => {
      resumed = [endsAfter('e2')];
      const other = await connected(world, { url: `${world.upstream.url}/mcp` });
      const calling = other.agent.act(SEARCH);
      await expect.poll(() => seen.length).toBeGreaterThan(2);
      await expectStatus(200, other.organisation.ask('POST', `/owner/agents/${other.agent.id}/suspend`, {}));
      const answer = await calling;
      expect(answer.body, answer.text).toMatchObject({
        reason: 'agent_suspended',
        detail: expect.stringContaining('may have been made'),
      });
      expect(cancelled).toEqual([{ requestId: callId, session: 'the-session' }]);
      const asked = seen.length;
      await sleep(500);
      expect(seen.length).toBe(asked);
    },
    scaledTimeout(30_000),
  );
});

describe('a stream that cannot be resumed has outcome unknown', () => {
  test.each<[string, Does]>([
    ['without an id', (response) => void open(response).end('data: \n\n')],
    ['with an id that no header can have', endsAfter('ünï')],
    ['with an id that is too long', endsAfter('e'.repeat(1_025))],
    ['with an id that is taken back', (response) => void open(response).end(`${priming('e1')}id\ndata: \n\n`)],
  ])('because the stream is %s', async (_, does) => {
    called = does;
    await unknown('not_mcp');
    expect(methods()).toEqual(['POST']);
  });

  const gone = { jsonrpc: '2.0', id: null, error: { code: -32_001, message: 'Session not found' } };
  test.each<[string, Does]>([
    ['has no such method', status(405)],
    ['does not know the session any more', status(404, JSON.stringify(gone))],
  ])('because the server %s', async (_, does) => {
    resumed = [does];
    await unknown('not_mcp');
    expect(methods()).toEqual(['POST', 'GET e1']);
  });

  test('because the server stays unavailable', async () => {
    resumed = [status(503)];
    await unknown('not_mcp');
    expect(methods()).toHaveLength(6);
  });

  test('because the server answers another request', async () => {
    resumed = [(response) => void open(response).end(answerTo('another'))];
    await unknown('not_mcp');
    expect(methods()).toEqual(['POST', 'GET e1']);
  });

  test('because the time of the call ends first, however long the server’s retry delay is', async () => {
    const pauses: number[] = [];
    let left = 60_000;
    const answer = await resumeStream(
      unreachable('not_mcp', true, 'no_answer'),
      { lastEventId: 'e1', retryMs: 45_000 },
      {
        resume: async () => unreachable('not_mcp', true, 'no_answer'),
        pause: async (ms) => {
          pauses.push(ms);
          left -= ms;
        },
        left: () => left,
      },
    );
    expect(answer).toMatchObject({ kind: 'unreachable', code: 'timeout', sent: true });
    expect(pauses).toEqual([45_000, 15_000]);
  });
});

describe('an abandoned call is cancelled at the server', () => {
  const hangs: Does = () => {};

  test.each([
    ['with a handshake', false],
    ['without a handshake', true],
  ])('when the agent loses access, %s', async (_, stateless) => {
    isStateless = stateless;
    const closed = Promise.withResolvers<void>();
    called = (response) => void response.once('close', closed.resolve);
    const other = await connected(world, { url: `${world.upstream.url}/mcp` });
    const calling = other.agent.act(SEARCH);
    await expect.poll(() => seen.length).toBe(1);
    await expectStatus(200, other.organisation.ask('POST', `/owner/agents/${other.agent.id}/suspend`, {}));
    const { body } = await calling;
    expect(body).toMatchObject({
      reason: 'agent_suspended',
      detail: expect.stringContaining('may have been made'),
    });
    await closed.promise;
    expect(cancelled).toEqual(stateless ? [] : [{ requestId: callId, session: 'the-session' }]);
    const row = await findAuditRow(world.db, other.organisation.id, body.audit_id);
    expect(JSON.parse(row?.flags ?? '{}')).toMatchObject({
      code: 'access_ended',
      ended_because: 'agent_suspended',
      outcome: 'unknown',
    });
  });

  test('when its time limit is reached', async () => {
    called = hangs;
    const other = await connected(world, { url: `${world.upstream.url}/mcp` }, { idle_seconds: 1 });
    expect((await other.agent.act(SEARCH)).body).toMatchObject({ code: 'timeout', outcome: 'unknown' });
    expect(cancelled).toEqual([{ requestId: callId, session: 'the-session' }]);
  });

  test('but not when it has already ended', async () => {
    called = answers;
    expect((await agent.act(SEARCH)).status).toBe(200);
    called = (response) => void response.destroy();
    await unknown('connection_lost');
    called = status(500);
    await agent.act(SEARCH);
    expect(cancelled).toEqual([]);
  });
});

test('a call is resumed at a server on the official SDK that closes the stream while its tool works', async () => {
  const events: { id: string; stream: string; message: JSONRPCMessage }[] = [];
  const eventStore = {
    storeEvent: async (stream: string, message: JSONRPCMessage) => {
      const id = `${stream}_${events.length}`;
      events.push({ id, stream, message });
      return id;
    },
    replayEventsAfter: async (
      last: string,
      { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
    ) => {
      const at = events.findIndex(({ id }) => id === last);
      const stream = events[at]?.stream ?? '';
      for (const { id, message } of events.slice(at + 1).filter((one) => one.stream === stream))
        if (Object.keys(message).length > 0) await send(id, message);
      return stream;
    },
  };
  let calls = 0;
  let asked = 0;
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    eventStore,
    retryInterval: 100,
  });
  const server = new McpServer({ name: 'patient', version: '1.0.0' });
  server.registerTool('search_issues', { inputSchema: z.looseObject({}) }, async (_args, context) => {
    calls++;
    context.http?.closeSSE?.();
    await sleep(600);
    return { content: [{ type: 'text' as const, text: 'worked' }] };
  });
  await server.connect(transport);
  const http = createServer(async (request, response) => {
    if (request.method === 'GET') asked++;
    await transport.handleRequest(request, response);
  });
  const port = await listenOnLoopback(http);
  const address = `127.0.0.1:${port}`;
  const other = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: address });
  const { agent: asking } = await connected(other, { url: `http://${address}/mcp` });
  const answer = await asking.act(SEARCH);
  expect(answer.body.data?.content, answer.text).toEqual([{ type: 'text', text: 'worked' }]);
  expect([calls, asked > 0]).toEqual([1, true]);
});
