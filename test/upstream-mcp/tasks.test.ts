/** MCP servers that run a call only as a task: the task is polled until it ends, and recorded as one call. */

import type { ServerResponse } from 'node:http';
import { decodeJwt } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { makeMcpClient } from '../../broker/egress/mcp/client.ts';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { type Organisation, shared, startWorld } from '../world/world.ts';
import { targetAt } from './connected.ts';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const CALL = { platform: 'tools', endpoint: '/tools/report', method: 'POST', scope: 'tools:all', data: { a: 1 } };
const REPORT = { content: [{ type: 'text', text: 'the report' }], n: 1 };
type Meta = { 'io.modelcontextprotocol/clientCapabilities'?: { extensions?: object }; 'ai.svc/attestation'?: string };
type Rpc = { id: string; method: string; params: { taskId?: string; task?: object; _meta?: Meta } };
/** The response to a poll: `status` and further members, or a handler. */
type Poll = Record<string, unknown> | ((rpc: Rpc, response: ServerResponse) => void);

let organisation: Organisation;
let agent: TestAgent;
let isHandshake: boolean;
let execution: object | undefined;
/** One for each poll; the last one repeatedly. */
let polls: Poll[];
/** The response to `tasks/result` in the handshake's revision. */
let outcome: Said;
/** Members of the first response in addition to the task's id. */
let seed: object;
let seen: {
  method: string;
  taskId?: string | undefined;
  name?: string | undefined;
  takesTasks: boolean;
  task?: object;
}[];
/** The attestations in the header and the `_meta` of each tool call. */
let attested: unknown[][];

const json = (response: ServerResponse, value: unknown, status = 200) => {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
};
/** Members of a JSON-RPC response, or a status without a body. */
type Said = { result: object } | { error: object } | number;
const errorOf = (code: number, data?: object): Said => ({ error: { code, message: 'no', ...(data && { data }) } });
const needsTasks = { requiredCapabilities: { extensions: { [EXTENSION]: {} } } };
const takesTasks = ({ params }: Rpc) =>
  EXTENSION in (params?._meta?.['io.modelcontextprotocol/clientCapabilities']?.extensions ?? {});
const TASK = { taskId: 'a task, ü', pollIntervalMs: 100, pollInterval: 100, ttlMs: null };
const GREETING = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, tasks: { requests: { tools: { call: {} } } } },
  serverInfo: { name: 'tasks', version: '1' },
};

/** Returns the server's response to a request that is not a poll. */
function said(rpc: Rpc): Said | 'poll' {
  const { method, params } = rpc;
  switch (method) {
    case 'tools/list':
      if (isHandshake && params._meta) return 400;
      return {
        result: { tools: [{ name: 'report', inputSchema: { type: 'object' }, ...(execution && { execution }) }] },
      };
    case 'initialize':
      return { result: GREETING };
    case 'notifications/initialized':
      return 202;
  }
  if (!isHandshake && !takesTasks(rpc)) return errorOf(-32_021, needsTasks);
  switch (method) {
    case 'tools/call': {
      if (isHandshake && !params.task) return { result: { content: [], isError: true } };
      const task = { ...TASK, status: 'working', ...seed };
      return { result: isHandshake ? { task } : { resultType: 'task', ...task } };
    }
    case 'tasks/cancel':
      return { result: {} };
    case 'tasks/result':
      return outcome;
  }
  return 'poll';
}

function serve(rpc: Rpc, response: ServerResponse): void {
  const answer = said(rpc);
  const [poll = {}] = answer !== 'poll' ? [] : polls.length > 1 ? polls.splice(0, 1) : polls;
  if (typeof poll === 'function') poll(rpc, response);
  else if (answer === 'poll')
    json(response, { jsonrpc: '2.0', id: rpc.id, result: { resultType: 'complete', ...TASK, ...poll } });
  else if (typeof answer === 'number') json(response, {}, answer);
  else json(response, { jsonrpc: '2.0', id: rpc.id, ...answer });
}

const world = shared(() => startWorld());
beforeAll(async () => {
  world.upstream.answer = (request, response, body) => {
    const rpc = JSON.parse(body) as Rpc;
    const name = request.headers['mcp-name'] as string | undefined;
    const { taskId, task } = rpc.params ?? {};
    seen.push({ method: rpc.method, taskId, name, takesTasks: takesTasks(rpc), ...(task && { task }) });
    if (rpc.method === 'tools/call')
      attested.push([request.headers['x-svc-attestation'], rpc.params._meta?.['ai.svc/attestation']]);
    serve(rpc, response);
  };
});
beforeEach(async () => {
  [isHandshake, execution, seed, seen, attested] = [false, undefined, {}, [], []];
  polls = [{ status: 'working' }, { status: 'completed', result: REPORT }];
  outcome = { result: REPORT };
  await world.forgive();
  organisation = await world.organisation();
  const scopes = { 'tools:all': ['tool *'] };
  const manifest = { kind: 'mcp', base_url: `${world.upstream.url}/mcp`, scopes };
  await organisation.platform({ id: 'tools', manifest });
  const policy = await organisation.policy([{ effect: 'allow' }]);
  agent = await organisation.agent({ policy, grants: { tools: { scopeList: Object.keys(scopes) } } });
});
const methods = () => seen.map(({ method }) => method);
const called = () => seen.slice(methods().indexOf('tools/call'));

describe('a task of revision 2026-07-28', () => {
  test('is created when the server requires it, and its result is the answer of the call', async () => {
    const done = await agent.act(CALL);
    expect([done.status, done.body.data], done.text).toEqual([200, REPORT]);
    expect(called().map(({ method, takesTasks }) => [method, takesTasks])).toEqual([
      ['tools/call', false],
      ['tools/call', true],
      ['tasks/get', true],
      ['tasks/get', true],
    ]);
    const encoded = `=?base64?${Buffer.from('a task, ü').toString('base64')}?=`;
    expect(called().slice(2)).toEqual(
      Array.from({ length: 2 }, () => ({ method: 'tasks/get', taskId: 'a task, ü', name: encoded, takesTasks: true })),
    );
    expect((await evidenceOf(world, agent, done.body._meta.audit_id)).row).toMatchObject({
      result: 'allowed',
      upstream_status: 200,
    });
  });

  test('has an attestation of its own, because servers accept none twice', async () => {
    const scopes = { 'tools:all': ['tool *'] };
    const manifest = { kind: 'mcp', base_url: `${world.upstream.url}/mcp`, scopes, attestation: 'both' };
    await organisation.platform({ id: 'attested', manifest });
    const policy = await organisation.policy([{ effect: 'allow' }]);
    const caller = await organisation.agent({ policy, grants: { attested: { scopeList: Object.keys(scopes) } } });
    const { data, _meta } = (await caller.act({ ...CALL, platform: 'attested' })).body;
    expect(data).toEqual(REPORT);
    const [first, second] = attested;
    expect([first![0], second![0]]).toEqual([first![1], second![1]]);
    // Identified by `jti`, as servers do (MC-01).
    const ids = [first, second].map((one) => decodeJwt(String(one![0])).jti);
    expect(ids).toEqual([_meta.audit_id, `${_meta.audit_id}.2`]);
  });

  test('may have ended already when it is returned', async () => {
    seed = { status: 'completed' };
    polls = [{ status: 'completed', result: REPORT }];
    expect((await agent.act(CALL)).body.data).toEqual(REPORT);
    expect(called().map(({ method }) => method)).toEqual(['tools/call', 'tools/call', 'tasks/get']);
  });

  test('that failed is a JSON-RPC error, as for a call without a task', async () => {
    polls = [{ status: 'failed', error: { code: -32_603, message: 'too much' } }];
    const failed = await agent.act(CALL);
    expect([failed.status, failed.body.data]).toEqual([200, { error: { code: -32_603, message: 'too much' } }]);
  });

  test('is polled again after a temporary failure of a poll, and the call is made once', async () => {
    polls = [
      (_rpc, response) => json(response, {}, 503),
      (_rpc, response) => json(response, {}, 429),
      ({ id }, response) => json(response, { jsonrpc: '2.0', id, ...(errorOf(-32_603) as object) }),
      (_rpc, response) => void response.destroy(),
      { status: 'completed', result: REPORT },
    ];
    expect((await agent.act(CALL)).body.data).toEqual(REPORT);
    expect(methods().filter((method) => method === 'tools/call')).toHaveLength(2);
  });

  test.each<[string, string, Poll[], boolean, object?]>([
    ['that wants something of its caller', 'asked_back', [{ status: 'input_required', inputRequests: {} }], true],
    ['that somebody else cancelled', 'task_ended', [{ status: 'cancelled' }], false],
    [
      'that its server does not know',
      'task_ended',
      [({ id }, response) => json(response, { jsonrpc: '2.0', id, ...(errorOf(-32_602) as object) })],
      true,
    ],
    ['that its server shows to nobody', 'task_ended', [(_rpc, response) => json(response, {}, 403)], true],
    ['in a state that there is not', 'not_mcp', [{ status: 'dreaming' }], true],
    ['that is completed without a result', 'not_mcp', [{ status: 'completed' }], false],
    ['that failed without an error', 'not_mcp', [{ status: 'failed', error: { code: 'x' } }], false],
    ['without an id', 'not_mcp', [], false, { taskId: undefined }],
    ['whose id is a number', 'not_mcp', [], false, { taskId: 7 }],
  ])('%s: 502, and the outcome is unknown', async (_what, code, answers, isCancelled, different = {}) => {
    polls = answers;
    seed = different;
    const refused = await agent.act(CALL);
    expect([refused.status, refused.body.error, refused.body.code], refused.text).toEqual([
      502,
      'upstream_unreachable',
      code,
    ]);
    expect(methods().at(-1) === 'tasks/cancel').toBe(isCancelled);
    expect(refused.body.outcome).toBe('unknown');
  });

  test('an error about another missing capability is returned, without a second call', async () => {
    const whole = world.upstream.answer!;
    try {
      world.upstream.answer = (request, response, body) => {
        const { id, method } = JSON.parse(body) as Rpc;
        if (method !== 'tools/call') return whole(request, response, body);
        seen.push({ method, takesTasks: false });
        json(response, {
          jsonrpc: '2.0',
          id,
          ...(errorOf(-32_021, { requiredCapabilities: { sampling: {} } }) as object),
        });
      };
      expect((await agent.act(CALL)).body.data.error.code).toBe(-32_021);
      expect(called().map(({ method }) => method)).toEqual(['tools/call']);
    } finally {
      world.upstream.answer = whole;
    }
  });
});

describe('a task of revision 2025-11-25', () => {
  beforeEach(() => {
    isHandshake = true;
    execution = { taskSupport: 'required' };
  });
  test('is created when the tool requires it, and its result fetched', async () => {
    polls = [{ status: 'working' }, { status: 'completed' }];
    const done = await agent.act(CALL);
    expect([done.status, done.body.data], done.text).toEqual([200, REPORT]);
    expect(called().map(({ method }) => method)).toEqual(['tools/call', 'tasks/get', 'tasks/get', 'tasks/result']);
    expect(called()[0]!.task).toEqual({});
  });

  test('that failed has an error in place of its result', async () => {
    polls = [{ status: 'failed' }];
    outcome = { error: { code: -32_603, message: 'too much' } };
    expect((await agent.act(CALL)).body.data).toEqual({ error: { code: -32_603, message: 'too much' } });
  });

  test('is not created when the tool supports it optionally', async () => {
    execution = { taskSupport: 'optional' };
    expect((await agent.act(CALL)).body.data.isError).toBe(true);
    expect(called().map(({ method, task }) => [method, task])).toEqual([['tools/call', undefined]]);
  });
});

describe('a task that does not end', () => {
  test('is cancelled when the time limit of the call is reached', async () => {
    polls = [{ status: 'working' }];
    const outbound = makeOutbound({ allowPrivate: [world.upstream.address] });
    afterFile(() => outbound.close());
    const target = targetAt(`${world.upstream.url}/mcp`);
    const client = makeMcpClient(outbound, { ...target, session: { era: 'stateless' }, timeoutMs: 1_000 }, '1');
    const over = await client.call({ name: 'report' }, {}, () => ({}));
    expect(over).toMatchObject({ kind: 'unreachable', code: 'timeout', sent: true });
    expect(methods().at(-1)).toBe('tasks/cancel');
    expect(methods().filter((method) => method === 'tasks/get').length).toBeGreaterThan(1);
  });

  test('ends immediately when the agent is suspended, without waiting for the next poll, and is cancelled', async () => {
    seed = { pollIntervalMs: 15_000 };
    const call = agent.act(CALL);
    await expect.poll(() => methods().filter((method) => method === 'tools/call').length).toBe(2);
    const since = performance.now();
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, { reason: 'enough' });
    const ended = await call;
    expect([ended.status, ended.body.error], ended.text).toEqual([403, 'agent_halted']);
    await expect.poll(() => methods().at(-1)).toBe('tasks/cancel');
    expect(performance.now() - since).toBeLessThan(scaledTimeout(10_000));
  });
});
