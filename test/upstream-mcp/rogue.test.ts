/** MCP servers that hang, flood, lie or send requests are contained: 502, recorded in the audit, and nothing of their response reaches the agent. */
import type { ServerResponse } from 'node:http';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { listAll } from '../../broker/calls/mcp/list.ts';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { makeMcpClient } from '../../broker/egress/mcp/client.ts';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { shared, startWorld } from '../world/world.ts';
import { targetAt } from './connected.ts';

const CALL = { platform: 'tools', endpoint: '/tools/echo', method: 'POST', scope: 'tools:all', data: { a: 1 } };
const TOOL = { name: 'echo', inputSchema: { type: 'object' } };
const json = (response: ServerResponse, value: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof value === 'string' ? value : JSON.stringify(value));
};
const sseWhole = (response: ServerResponse, ...messages: unknown[]) => {
  sse(response, ...messages);
  response.end();
};
const sse = (response: ServerResponse, ...messages: unknown[]) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const message of messages)
    response.write(`data: ${typeof message === 'string' ? message : JSON.stringify(message)}\n\n`);
};
type Rpc = { id: string; method: string; params: { cursor?: string } };
const ok = (id: string, result: object = { content: [] }) => ({ jsonrpc: '2.0', id, result });
const notice = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1, progress: 1 } };

let agent: TestAgent;
/** The server's behaviour when a tool is called, and when its tools are listed. */
let called: (rpc: Rpc, response: ServerResponse) => void;
let listed: ((rpc: Rpc, response: ServerResponse) => void) | undefined;
const world = shared(() => startWorld());
beforeAll(async () => {
  world.upstream.answer = (_request, response, body) => {
    const rpc = JSON.parse(body) as Rpc;
    if (rpc.method === 'tools/call') return called(rpc, response);
    if (rpc.method === 'tools/list' && listed) return listed(rpc, response);
    if (rpc.method === 'tools/list') return json(response, ok(rpc.id, { tools: [TOOL] }));
    json(response, {}, 404);
  };
  const organisation = await world.organisation();
  const scopes = { 'tools:all': ['tool *'] };
  await organisation.platform({
    id: 'tools',
    manifest: { kind: 'mcp', base_url: `${world.upstream.url}/mcp`, scopes },
  });
  const policy = await organisation.policy([{ effect: 'allow' }]);
  agent = await organisation.agent({ policy, grants: { tools: { scopeList: Object.keys(scopes) } } });
});
beforeEach(async () => {
  listed = undefined;
  called = ({ id }, response) => json(response, ok(id));
  await world.forgive();
  world.upstream.seen = [];
});
const calls = () => world.upstream.seen.filter(({ body }) => body.includes('"tools/call"')).length;

describe('responses that are accepted', () => {
  test.each<[string, typeof called]>([
    ['JSON', ({ id }, response) => json(response, ok(id, { content: [], n: 'x' }))],
    ['a stream', ({ id }, response) => sseWhole(response, ok(id))],
    [
      'a stream with notices and a ping first',
      ({ id }, response) => sseWhole(response, notice, { jsonrpc: '2.0', id: 9, method: 'ping' }, ok(id)),
    ],
    [
      'a stream with keep-alives of their own types, whatever is in them',
      ({ id }, response) => {
        sse(response);
        response.write('event: ping\ndata: ping - 2026-11-28 19:00:00\n\nevent: keepalive\ndata: {}\n\n');
        response.end(`event: message\ndata: ${JSON.stringify(ok(id))}\n\nevent: ping\ndata: over\n\n`);
      },
    ],
    ['a stream that is never ended', ({ id }, response) => sse(response, notice, ok(id), notice)],
    [
      'a stream that resumes',
      ({ id }, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('id: 1\nretry: 10\ndata: \n\n');
        response.end(`id: 2\ndata: ${JSON.stringify(ok(id))}\n\n`);
      },
    ],
  ])('%s', async (_what, does) => {
    called = does;
    const answer = await agent.act(CALL);
    expect([answer.status, answer.body.data?.content], answer.text).toEqual([200, []]);
    expect(calls()).toBe(1);
  });

  test('numbers keep their digits', async () => {
    called = ({ id }, response) =>
      json(response, `{"jsonrpc":"2.0","id":"${id}","result":{"n":12345678901234567890,"f":1.10}}`);
    expect((await agent.act(CALL)).text).toContain('{"n":12345678901234567890,"f":1.10}');
  });

  test('an error of the tool, and a JSON-RPC error, are returned as answers', async () => {
    called = ({ id }, response) => json(response, ok(id, { isError: true, content: [{ type: 'text', text: 'no' }] }));
    expect((await agent.act(CALL)).body.data.isError).toBe(true);
    called = ({ id }, response) => json(response, { jsonrpc: '2.0', id, error: { code: -32602, message: 'bad' } });
    const answer = await agent.act(CALL);
    expect([answer.status, answer.body.data]).toEqual([200, { error: { code: -32602, message: 'bad' } }]);
    called = ({ id }, response) => json(response, { jsonrpc: '2.0', id, error: { code: -32602, message: 'bad' } }, 400);
    expect((await agent.act(CALL)).body._meta.upstream_status).toBe(400);
    called = (_rpc, response) => json(response, { error: 'no_such_thing' }, 403);
    const forbidden = await agent.act(CALL);
    expect([forbidden.body._meta.upstream_status, forbidden.body.data]).toEqual([403, { error: 'no_such_thing' }]);
    called = (_rpc, response) => json(response, {}, 401);
    expect([(await agent.act(CALL)).body.error, calls()]).toEqual(['platform_reauth_needed', 5]);
  });
});

describe('MC-02 an invalid response to a tool call', () => {
  const other = crypto.randomUUID();
  test.each<[string, string, typeof called]>([
    ['another id', 'not_mcp', (_rpc, response) => json(response, ok(other))],
    ['no id', 'not_mcp', (_rpc, response) => json(response, { jsonrpc: '2.0', result: {} })],
    ['another id before ours', 'not_mcp', ({ id }, response) => sse(response, ok(other), ok(id))],
    ['two answers at once', 'not_mcp', ({ id }, response) => json(response, [ok(id), ok(id)])],
    [
      'a member twice',
      'not_mcp',
      ({ id }, response) => json(response, `{"jsonrpc":"2.0","id":"${id}","result":{"a":1},"result":{"b":2}}`),
    ],
    [
      'result and error',
      'not_mcp',
      ({ id }, response) => json(response, { ...ok(id), error: { code: 1, message: 'x' } }),
    ],
    [
      'a result that is a text',
      'not_mcp',
      ({ id }, response) => json(response, { jsonrpc: '2.0', id, result: 'INJECTED' }),
    ],
    ['no JSON-RPC', 'not_mcp', (_rpc, response) => json(response, { content: ['INJECTED'] })],
    ['no JSON', 'not_mcp', (_rpc, response) => json(response, '{"jsonrpc":"2.0",INJECTED')],
    [
      'a page',
      'not_mcp',
      (_rpc, response) => {
        response.setHeader('content-type', 'text/html');
        response.end('INJECTED');
      },
    ],
    [
      'a text in another charset',
      'not_utf8',
      ({ id }, response) => {
        response.setHeader('content-type', 'application/json');
        response.end(
          Buffer.from(JSON.stringify(ok(id, { content: [{ type: 'text', text: 'grün INJECTED' }] })), 'latin1'),
        );
      },
    ],
    [
      'a stream in another charset',
      'not_utf8',
      ({ id }, response) => {
        response.setHeader('content-type', 'text/event-stream');
        response.write(Buffer.from(`data: ${JSON.stringify(ok(id, { text: 'grün INJECTED' }))}\n\n`, 'latin1'));
      },
    ],
    ['an event that is no message', 'not_mcp', ({ id }, response) => sse(response, 'INJECTED', ok(id))],
    ['a stream that ends without an answer', 'not_mcp', (_rpc, response) => sseWhole(response, notice)],
    [
      'a request of its own (sampling)',
      'asked_back',
      ({ id }, response) =>
        sse(
          response,
          { jsonrpc: '2.0', id: 1, method: 'sampling/createMessage', params: { prompt: 'INJECTED' } },
          ok(id),
        ),
    ],
    [
      'a request with our id',
      'asked_back',
      ({ id }, response) => json(response, { jsonrpc: '2.0', id, method: 'elicitation/create', params: {} }),
    ],
    [
      'what it wants first',
      'asked_back',
      ({ id }, response) =>
        json(
          response,
          ok(id, { resultType: 'input_required', inputRequests: { a: { method: 'elicitation/create' } } }),
        ),
    ],
    ['too many notices', 'not_mcp', (_rpc, response) => sse(response, ...Array.from({ length: 1_001 }, () => notice))],
    [
      'more than 10 MiB',
      'too_large',
      ({ id }, response) => json(response, ok(id, { text: 'x'.repeat(11 * 1024 * 1024) })),
    ],
    [
      'a flood without an end',
      'too_large',
      (_rpc, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const flood = () => {
          while (!response.destroyed && response.write(`: ${'x'.repeat(65_536)}\n`));
          if (!response.destroyed) response.once('drain', flood);
        };
        flood();
      },
    ],
    ['nothing, and hangs up', 'connection_lost', (_rpc, response) => void response.destroy()],
    [
      '204',
      'not_mcp',
      (_rpc, response) => {
        response.writeHead(204);
        response.end();
      },
    ],
  ])('%s: 502 %s', async (_what, code, does) => {
    called = does;
    const answer = await agent.act(CALL);
    expect([answer.status, answer.body.error, answer.body.code, answer.body.outcome], answer.text).toEqual([
      502,
      'upstream_unreachable',
      code,
      'unknown',
    ]);
    expect(answer.text).not.toContain('INJECTED');
    const { row } = await evidenceOf(world, agent, answer.body.audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
    expect(calls()).toBe(1);
    called = ({ id }, response) => json(response, ok(id));
    expect((await agent.act(CALL)).status).toBe(200);
  });
});

describe('an invalid list of tools', () => {
  const page = (tools: unknown, nextCursor?: unknown) => ({ tools, ...(nextCursor !== undefined && { nextCursor }) });
  const many = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => ({ ...TOOL, name: `tool_${from + i}` }));
  const marks = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: 'string', 'x-mcp-header': `H${i}` }]));
  let n = 0;
  test.each<[string, string, (rpc: Rpc) => object]>([
    ['ten thousand tools', 'too_many_tools', () => page(many(0, 10_000))],
    ['ten thousand tools in pages', 'too_many_tools', () => page(many(n++ * 100, 100), `page-${n}`)],
    [
      '200,000 tools that are empty',
      'too_many_tools',
      () => page(Array(200_000).fill({ name: '', inputSchema: null })),
    ],
    [
      'a tool that marks 100,000 arguments',
      'too_many_tools',
      () => page([{ name: 'echo', inputSchema: { type: 'object', properties: marks(100_000) } }]),
    ],
    ['a cursor that goes round', 'too_many_tools', ({ params }) => page([], params.cursor === 'a' ? 'b' : 'a')],
    ['a cursor that stays', 'too_many_tools', () => page([TOOL], 'a')],
    ['pages without an end', 'too_many_tools', () => page([], `page-${n++}`)],
    ['a huge cursor', 'not_mcp', () => page([], 'x'.repeat(5_000))],
    ['a cursor that is a number', 'not_mcp', () => page([], 7)],
    ['no list', 'not_mcp', () => page('INJECTED')],
    ['tools without names', 'not_mcp', () => page([{ inputSchema: {} }])],
    ['tools without arguments', 'not_mcp', () => page([{ name: 'echo' }])],
    ['a name twice', 'not_mcp', () => page([TOOL, { ...TOOL, description: 'another' }])],
    ['a broken text', 'not_mcp', () => page([{ ...TOOL, description: '\ud800' }])],
  ])('%s: 502 %s, and no tool is called', async (_what, code, answers) => {
    listed = (rpc, response) => json(response, ok(rpc.id, answers(rpc)));
    const began = performance.now();
    const answer = await agent.act(CALL);
    expect(performance.now() - began, 'nobody else is answered while the list is looked at').toBeLessThan(15_000);
    expect([answer.status, answer.body.code, answer.body.outcome], answer.text).toEqual([502, code, 'not_sent']);
    expect(answer.text).not.toContain('INJECTED');
    expect(calls()).toBe(0);
    await evidenceOf(world, agent, answer.body.audit_id);
    listed = undefined;
    expect((await agent.act(CALL)).status).toBe(200);
  });
});

describe('a server that answers the list of tools with an error', () => {
  test.each<[string, object, number]>([
    ['503', { error: 'INJECTED' }, 503],
    ['404', { error: 'INJECTED' }, 404],
    ['an error of JSON-RPC', { jsonrpc: '2.0', error: { code: -32603, message: 'INJECTED' } }, 500],
    ['one with status 200', { jsonrpc: '2.0', error: { code: -32603, message: 'INJECTED' } }, 200],
  ])('%s: 502 tools_unlisted, and no call is recorded as made', async (_what, says, status) => {
    listed = ({ id }, response) => json(response, { id, ...says }, status);
    const answer = await agent.act(CALL);
    const { code, outcome, audit_id } = answer.body;
    expect([answer.status, code, outcome], answer.text).toEqual([502, 'tools_unlisted', 'not_sent']);
    expect([answer.text.includes('INJECTED'), calls()]).toEqual([false, 0]);
    const { row } = await evidenceOf(world, agent, audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable', upstream_status: null });
    listed = undefined;
    expect((await agent.act(CALL)).status).toBe(200);
  });

  test.each([403, 429])('status %i is passed on, because it concerns the caller', async (status) => {
    listed = (_rpc, response) => json(response, { error: 'no' }, status);
    expect((await agent.act(CALL)).body._meta.upstream_status).toBe(status);
    expect(calls()).toBe(0);
  });
});

test('a server that never answers is abandoned after the time limit', async () => {
  const outbound = makeOutbound({ allowPrivate: [world.upstream.address], idleTimeoutMs: 100, totalTimeoutMs: 300 });
  afterFile(() => outbound.close());
  const target = targetAt(`${world.upstream.url}/mcp`);
  listed = () => {};
  const silent = await listAll(makeMcpClient(outbound, target, '1'));
  expect(silent).toMatchObject({ ok: false, answer: { kind: 'unreachable', code: 'timeout' } });
  listed = (_rpc, response) => sse(response, notice);
  const endless = await listAll(makeMcpClient(outbound, target, '1'));
  expect(endless).toMatchObject({ ok: false, answer: { kind: 'unreachable', code: 'timeout' } });
  const refused = makeOutbound({ allowPrivate: [] });
  afterFile(() => refused.close());
  const guarded = await listAll(makeMcpClient(refused, target, '1'));
  expect(guarded).toMatchObject({ ok: false, answer: { kind: 'unreachable', code: 'address_refused' } });
});

test('a redirect of a server is not followed', async () => {
  called = (_rpc, response) => {
    response.writeHead(307, { location: 'http://169.254.169.254/latest' });
    response.end();
  };
  const answer = await agent.act(CALL);
  expect([answer.status, answer.body._meta.upstream_status]).toEqual([200, 307]);
  expect(calls()).toBe(1);
});
