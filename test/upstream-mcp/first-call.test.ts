/** The first call to an MCP server, whose tools are not known yet: whatever the server does, the call is recorded in the audit. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { shared, startWorld } from '../world/world.ts';
import { connected, SCOPES, SEARCH } from './connected.ts';

/** The server's result for a list of tools, as JSON text. */
let list: () => string | Promise<string>;
let agent: TestAgent;
const calls = () => world.upstream.seen.filter(({ body }) => body.includes('"tools/call"')).length;
const first = async (rules?: readonly unknown[]) => {
  const made = await connected(world, { url: `${world.upstream.url}/mcp` }, {}, rules);
  agent = made.agent;
  return made;
};
const world = shared(() => startWorld());
beforeAll(async () => {
  world.upstream.answer = async (_request, response, body) => {
    const { id, method } = JSON.parse(body);
    const result = method === 'tools/list' ? await list() : '{"content":[]}';
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`{"jsonrpc":"2.0","id":"${id}","result":${result}}`);
  };
});
afterEach(() => {
  world.upstream.seen = [];
});

const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const deepTool = (levels: number) =>
  `{"name":"search_issues","inputSchema":{"type":"object","default":${deep(levels)}}}`;
const empty = JSON.stringify({ name: '', inputSchema: null });

describe('an invalid first list of tools', () => {
  test.each<[string, string, () => string]>([
    ['200,000 empty tools', 'too_many_tools', () => `{"tools":[${Array(200_000).fill(empty)}]}`],
    ['a definition that is too deep', 'not_mcp', () => `{"tools":[${deepTool(5_000)}]}`],
  ])('%s: 502 %s, on record, and the tool is not called', async (_what, code, says) => {
    list = says;
    const { organisation } = await first();
    const answer = await agent.act(SEARCH);
    expect([answer.status, answer.body.code, answer.body.outcome], answer.text).toEqual([502, code, 'not_sent']);
    const { row } = await evidenceOf(world, agent, answer.body.audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable', path: '/tools/search_issues' });
    expect(calls()).toBe(0);
    const tools = await organisation.ask('GET', '/owner/platforms/tools/tools');
    expect([tools.status, tools.body.tools]).toEqual([200, []]);
  });
});

test('an approved call to a server that moved and whose tool list is invalid fails immediately', async () => {
  const tools = '{"tools":[{"name":"search_issues","inputSchema":{"type":"object"}}]}';
  list = () => tools;
  const { organisation } = await first([{ effect: 'require_approval' }]);
  const { body } = await expectStatus(202, agent.act(SEARCH));
  const manifest = { kind: 'mcp', base_url: `${world.upstream.url}/moved`, scopes: SCOPES };
  await organisation.platform({ id: 'tools', secret: null, manifest });
  list = () => `{"tools":[${Array(200_000).fill(empty)}]}`;
  world.upstream.seen = [];
  const id = body.approval_id;
  expect((await organisation.ask('POST', `/owner/approvals/${id}/approve`)).status).toBe(200);
  const done = await agent.get(`/v1/approvals/${id}?wait=20`);
  expect(done.body.execution_error).toMatch(/too_many_tools|lists more tools/);
  expect([done.body.executed_at, calls(), world.upstream.seen.length]).toEqual([null, 0, 1]);
});

test('a definition may be deeply nested; one that is too deep later does not break the owner’s page of tools', async () => {
  list = () => `{"tools":[${deepTool(100)}]}`;
  const { organisation } = await first();
  expect((await agent.act(SEARCH)).status).toBe(200);
  list = () => `{"tools":[${deepTool(5_000)}]}`;
  const answer = await agent.act(SEARCH);
  expect([answer.status, answer.body.code, answer.body.outcome], answer.text).toEqual([502, 'not_mcp', 'not_sent']);
  expect((await organisation.ask('POST', '/owner/platforms/tools/tools/refresh')).status).toBe(502);
  const tools = await organisation.ask('GET', '/owner/platforms/tools/tools');
  expect([tools.status, tools.body.tools]).toMatchObject([200, [{ name: 'search_issues', state: 'accepted' }]]);
  expect(calls()).toBe(1);
});

describe('a change while a server lists its tools for the first time', () => {
  const tools = `{"tools":[{"name":"search_issues","inputSchema":{"type":"object"}}]}`;
  test.each<[string, { path: (id: string) => string; body?: object } | undefined, number, string | undefined]>([
    ['nothing', undefined, 200, undefined],
    ['the agent is suspended', { path: (id) => `/owner/agents/${id}/suspend`, body: {} }, 403, 'agent_suspended'],
    ['it is revoked', { path: (id) => `/owner/agents/${id}/revoke`, body: {} }, 403, 'agent_revoked'],
    [
      'its grant loses the scope',
      { path: (id) => `/owner/agents/${id}/grants/tools`, body: { scopes: ['tools:write'] } },
      403,
      'scope_not_granted',
    ],
  ])('%s: takes effect on the call in progress', async (_what, change, status, reason) => {
    const { organisation } = await first();
    let changed = 200;
    list = async () => {
      if (change) changed = (await organisation.ask('POST', change.path(agent.agentId), change.body)).status;
      change = undefined;
      return tools;
    };
    const answer = await agent.act(SEARCH);
    expect([changed, answer.status, answer.body.reason], answer.text).toEqual([200, status, reason]);
    expect(calls()).toBe(status === 200 ? 1 : 0);
  });

  test('a repeated Idempotency-Key is answered with in progress for as long as the server may take', async () => {
    await first();
    const key = { 'idempotency-key': crypto.randomUUID() };
    let second: Promise<Answer> | undefined;
    list = async () => {
      if (second) return tools;
      // The list is requested twice, because the token was refused the first time, with a refresh in between.
      world.clock.skewMs = 270_000;
      second = agent.act(SEARCH, key);
      await second;
      return tools;
    };
    const answer = await agent.act(SEARCH, key);
    world.clock.skewMs = 0;
    const { status, body } = (await second)!;
    expect([status, body.error]).toEqual([409, 'idempotency_in_progress']);
    expect([answer.status, calls()], answer.text).toEqual([200, 1]);
  });

  test('a tool that is not in the first list is not called, although the next list contains it', async () => {
    await first();
    const lists = ['{"tools":[]}', tools];
    list = () => lists.shift()!;
    const answer = await agent.act(SEARCH);
    expect([answer.status, answer.body.reason], answer.text).toEqual([403, 'endpoint_scope_mismatch']);
    expect([calls(), lists.length]).toEqual([0, 1]);
    expect((await evidenceOf(world, agent, answer.body.audit_id)).row.detail).toMatch(/has no tool search_issues/);
    list = () => tools;
    expect((await agent.act(SEARCH)).status).toBe(200);
  });
});
