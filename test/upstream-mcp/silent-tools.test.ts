/** How long a tool of an MCP server may work without sending anything. */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { makeMcpClient } from '../../broker/egress/mcp/client.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { type Organisation, shared, startWorld } from '../world/world.ts';
import { connected, SEARCH, targetAt } from './connected.ts';

let organisation: Organisation;
let agent: TestAgent;
/** How many milliseconds the server works silently on a request, by method. */
let works: Record<string, number>;
const world = shared(() => startWorld());
beforeAll(async () => {
  world.upstream.answer = async (_request, response, body) => {
    const { id, method } = JSON.parse(body);
    await sleep(works[method] ?? 0);
    const tool = { name: 'search_issues', inputSchema: { type: 'object' } };
    const result = method === 'tools/list' ? { tools: [tool] } : { content: [], n: 1 };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  };
  ({ organisation, agent } = await connected(world, { url: `${world.upstream.url}/mcp` }));
});
beforeEach(() => {
  works = {};
});

const setIdle = async (idle_seconds: number | null) => {
  const { body } = await organisation.ask('GET', '/owner/connections');
  const path = `/owner/connections/${body.connections[0].id}/settings`;
  await expectStatus(200, organisation.ask('POST', path, { idle_seconds }));
};

test('a tool call may be silent for longer than a list of tools', async () => {
  const idle = scaledTimeout(500);
  const outbound = makeOutbound({
    allowPrivate: [world.upstream.address],
    idleTimeoutMs: idle,
    totalTimeoutMs: 60_000,
  });
  afterFile(() => outbound.close());
  const target = targetAt(`${world.upstream.url}/mcp`);
  const client = makeMcpClient(outbound, target, '1');
  expect(await client.list()).toMatchObject({ kind: 'result' });
  works = { 'tools/call': 4 * idle };
  expect(await client.call({ name: 'search_issues' }, {}, () => ({}))).toMatchObject({ kind: 'result' });
  works = { 'tools/list': 4 * idle };
  expect(await client.list()).toMatchObject({ kind: 'unreachable', code: 'timeout' });
});

test.each([
  ['nothing', null, 120_000, 120_000],
  ['ten minutes', 600, 600_000, 600_000],
  ['half a minute', 30, 30_000, 120_000],
])(
  'with %s in the connection, a tool call has that limit, and the list the default',
  async (_, seconds, idle, total) => {
    await setIdle(seconds);
    const send = vi.spyOn(world.running.broker.outbound, 'send');
    const answer = await agent.act(SEARCH);
    const sent = send.mock.calls.map(([request]) => request);
    send.mockRestore();
    await setIdle(null);
    expect(answer.status, answer.text).toBe(200);
    const limitsOf = (method: string) => {
      const request = sent.find(({ body }) => String(body).includes(`"${method}"`));
      // Rounded up, because some of the time has already passed.
      const near = (ms: number | undefined) => ms && Math.ceil(ms / 30_000) * 30_000;
      return [near(request?.idleTimeoutMs), near(request?.totalTimeoutMs)];
    };
    expect(limitsOf('tools/list')).toEqual([undefined, 120_000]);
    expect(limitsOf('tools/call')).toEqual([idle, total]);
  },
);

test('without a limit in the connection, the platform’s applies', async () => {
  const server = { url: `${world.upstream.url}/mcp` };
  const { agent: other } = await connected(world, server, { idle_seconds: 1 });
  works = { 'tools/call': 2_300 };
  const answer = await other.act(SEARCH);
  expect([answer.status, answer.body.code, answer.body.outcome], answer.text).toEqual([502, 'timeout', 'unknown']);
});

test('a tool that is silent for longer than the connection’s limit is cut off, and the audit row has outcome unknown', async () => {
  await setIdle(1);
  works = { 'tools/call': 2_300 };
  const answer = await agent.act(SEARCH);
  await setIdle(null);
  expect([answer.status, answer.body.code, answer.body.outcome], answer.text).toEqual([502, 'timeout', 'unknown']);
  const { row } = await evidenceOf(world, agent, answer.body.audit_id);
  expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
});
