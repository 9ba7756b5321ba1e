/** MCP servers as platforms: a governed call reaches a tool, in each variant of the protocol. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { type Manner, startMcpServer, type TestMcp } from '../world/mcp/server.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, startWorld, type World } from '../world/world.ts';
import { callOf, connected, SEARCH } from './connected.ts';

describe.each<Manner>(['both', 'handshake', 'sessions'])('a server that supports %s', (manner) => {
  let world: World;
  let mcp: TestMcp;
  let agent: TestAgent;
  beforeAll(async () => {
    mcp = await startMcpServer(manner);
    world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: mcp.address });
    ({ agent } = await connected(world, mcp));
  });
  beforeEach(() => {
    mcp.seen = [];
  });

  test('a call reaches the tool with its arguments and the credential, and its answer is the data', async () => {
    const answer = await agent.act({
      ...SEARCH,
      headers: { 'x-mine': '1', 'mcp-session-id': 'forged', accept: 'x/y' },
    });
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.data).toMatchObject({
      content: [{ type: 'text', text: '{"query":"open"}' }],
      structuredContent: { name: 'search_issues', args: { query: 'open' } },
    });
    expect(answer.body._meta).toMatchObject({
      upstream_status: 200,
      dropped_headers: ['accept', 'mcp-session-id'],
    });
    const called = mcp.seen.filter(({ rpc }) => rpc === 'tools/call');
    expect(called).toHaveLength(1);
    expect(called[0]!.params).toMatchObject({ name: 'search_issues', arguments: { query: 'open' } });
    expect(called[0]!.headers).toMatchObject({ authorization: `Bearer ${CANARY}`, 'x-mine': '1' });
    expect(called[0]!.headers['mcp-protocol-version']).toBe(manner === 'both' ? '2026-07-28' : '2025-11-25');
    const { row, payload } = await evidenceOf(world, agent, answer.body._meta.audit_id);
    expect(row).toMatchObject({
      result: 'allowed',
      path: '/tools/search_issues',
      method: 'POST',
      upstream_status: 200,
    });
    expect(payload).toMatchObject({ platform: 'tools', scope: 'tools:search.read', path: '/tools/search_issues' });
  });

  test('the protocol variant is detected once, and each agent has a session of its own', async () => {
    await agent.act(SEARCH);
    const before = mcp.seen.length;
    await agent.act(SEARCH);
    expect(mcp.seen.slice(before).map(({ rpc }) => rpc)).toEqual(['tools/list', 'tools/call']);
    if (manner !== 'sessions') return;
    const own = mcp.seen.at(-1)!.headers['mcp-session-id'];
    expect(own).toMatch(/^[0-9a-f-]{36}$/);
    const { agent: other } = await connected(world, mcp);
    expect((await other.act(SEARCH)).status).toBe(200);
    expect(mcp.seen.at(-1)!.headers['mcp-session-id']).not.toBe(own);
    // A lost session is replaced, and the tool is still called once.
    mcp.forget();
    mcp.seen = [];
    expect((await agent.act(SEARCH)).status).toBe(200);
    expect(mcp.seen.filter(({ rpc }) => rpc === 'tools/call')).toHaveLength(1);
  });

  test('a broker that stops ends its sessions, and starts new ones', async () => {
    if (manner !== 'sessions') return;
    const agents = [agent, (await connected(world, mcp)).agent];
    // Sessions of other tests.
    await world.restart();
    mcp.seen = [];
    for (const each of agents) expect((await each.act(SEARCH)).status).toBe(200);
    const begun = mcp.seen.filter(({ rpc }) => rpc === 'tools/call').map(({ headers }) => headers['mcp-session-id']);
    mcp.seen = [];
    await world.restart();
    expect(mcp.seen.map(({ rpc }) => rpc)).toEqual(['DELETE', 'DELETE']);
    expect(mcp.seen.map(({ headers }) => headers['mcp-session-id']).sort()).toEqual(begun.sort());
    expect((await agent.act(SEARCH)).status).toBe(200);
  });

  test('a session that the server answers with an error of its own is not used again', async () => {
    if (manner !== 'sessions') return;
    expect((await agent.act(SEARCH)).status).toBe(200);
    mcp.forget(500);
    mcp.seen = [];
    const failed = await agent.act(SEARCH);
    expect([failed.body.code, mcp.seen.map(({ rpc }) => rpc)]).toEqual(['tools_unlisted', ['tools/list']]);
    const next = await agent.act(SEARCH);
    expect(next.body._meta.upstream_status, next.text).toBe(200);
    expect(mcp.seen.filter(({ rpc }) => rpc === 'tools/call')).toHaveLength(1);
  });

  test('GET /tools lists the tools of a scope, with their endpoints', async () => {
    const list = { platform: 'tools', endpoint: '/tools', method: 'GET', scope: 'tools:write' };
    const answer = await expectStatus(200, agent.act(list));
    expect(answer.body.data).toEqual({
      tools: [
        expect.objectContaining({ name: 'write_issue', endpoint: '/tools/write_issue', effect: 'writes' }),
        expect.objectContaining({ name: 'do_whatever', endpoint: '/tools/do_whatever', effect: 'destroys' }),
      ],
      held_back: [],
    });
    expect(answer.body.data.tools[0].inputSchema.type).toBe('object');
  });
});

describe.each(ONE_STORE)(`governing tools on %s${postgresNote}`, (store) => {
  let world: World;
  let mcp: TestMcp;
  beforeAll(async () => {
    mcp = await startMcpServer();
    world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: mcp.address });
  });

  test('a rule that allows tools but not their listing makes the scope conditional, because one of its calls is refused', async () => {
    for (const rules of [
      [{ effect: 'allow', methods: ['POST'] }],
      [{ effect: 'allow' }, { effect: 'deny', methods: ['GET'] }],
    ]) {
      const { agent } = await connected(world, mcp, {}, rules);
      expect((await agent.act(SEARCH)).status).toBe(200);
      const list = await agent.act({ platform: 'tools', endpoint: '/tools', method: 'GET', scope: SEARCH.scope });
      expect([list.status, list.body.reason]).toEqual([403, 'denied_by_policy']);
      const [platform] = (await agent.get('/v1/agent/permissions')).body.data.platforms;
      expect(platform.scopes).toContain(SEARCH.scope);
      expect(platform.conditionalScopes).toContain(SEARCH.scope);
    }
  });

  test.each<[string, object, number, string]>([
    ['a tool of another scope', callOf('drop_issues', 'tools:write'), 403, 'endpoint_scope_mismatch'],
    ['a tool of no scope', callOf('unknown', 'tools:write'), 403, 'endpoint_scope_mismatch'],
    ['a tool that the server does not have', callOf('write_nothing', 'tools:write'), 403, 'endpoint_scope_mismatch'],
    ['another method', { ...SEARCH, method: 'PUT' }, 403, 'endpoint_scope_mismatch'],
    ['the server itself', { ...SEARCH, endpoint: '/' }, 403, 'endpoint_scope_mismatch'],
    ['a query', { ...SEARCH, endpoint: '/tools/search_issues?x=1' }, 400, 'invalid_endpoint'],
  ])('%s is refused, and no tool is called', async (_what, action, status, reason) => {
    const { agent } = await connected(world, mcp);
    mcp.seen = [];
    const answer = await agent.act(action as Record<string, unknown>);
    expect([answer.status, answer.body.reason ?? answer.body.error], answer.text).toEqual([status, reason]);
    expect(mcp.seen.filter(({ rpc }) => rpc === 'tools/call')).toEqual([]);
    expect((await agent.act(SEARCH)).status).toBe(200);
  });

  test('a destructive tool matches rules that hold DELETE, and never rules that allow DELETE', async () => {
    const guarded = await connected(world, mcp, {}, [
      { effect: 'allow', methods: ['POST'] },
      { effect: 'require_approval', methods: ['DELETE'] },
    ]);
    expect((await guarded.agent.act(SEARCH)).status).toBe(200);
    expect((await guarded.agent.act(callOf('write_issue', 'tools:write'))).status).toBe(200);
    expect((await guarded.agent.act(callOf('do_whatever', 'tools:write'))).status).toBe(202);
    expect((await guarded.agent.act(callOf('drop_issues', 'tools:drop'))).status).toBe(202);
    const { agent } = await connected(world, mcp, {}, [{ effect: 'allow', methods: ['DELETE', 'GET'] }]);
    const list = { platform: 'tools', endpoint: '/tools', method: 'GET', scope: 'tools:drop' };
    expect((await agent.act(list)).body.data.tools).toMatchObject([{ name: 'drop_issues', effect: 'destroys' }]);
    expect((await agent.act(callOf('drop_issues', 'tools:drop'))).body.reason).toBe('denied_by_policy');
    // The same holds for the very first call to a server, before its tools are known.
    const first = await connected(world, mcp, {}, [
      { effect: 'allow', methods: ['POST'] },
      { effect: 'deny', methods: ['DELETE'] },
    ]);
    expect((await first.agent.act(callOf('drop_issues', 'tools:drop'))).body.reason).toBe('denied_by_policy');
    const permissions = await first.agent.get('/v1/agent/permissions');
    expect(permissions.body.data.platforms[0]).toMatchObject({
      serverHost: mcp.address,
      serverName: 'tools',
      conditionalScopes: expect.arrayContaining(['tools:drop']),
    });
  });

  test('a destructive tool matches conditions on DELETE in rules that hold, and never in rules that allow', async () => {
    const guarded = await connected(world, mcp, {}, [
      { effect: 'allow', when: 'request.method == "POST"' },
      { effect: 'require_approval', when: 'request.method == "DELETE"' },
      { effect: 'deny', when: 'request.method == "DELETE" && request.endpoint.endsWith("/drop_issues")' },
    ]);
    expect((await guarded.agent.act(callOf('write_issue', 'tools:write'))).status).toBe(200);
    expect((await guarded.agent.act(callOf('do_whatever', 'tools:write'))).status).toBe(202);
    expect((await guarded.agent.act(callOf('drop_issues', 'tools:drop'))).body.reason).toBe('denied_by_policy');
    const { agent } = await connected(world, mcp, {}, [
      { effect: 'allow', when: 'request.method in ["DELETE", "GET"]' },
    ]);
    expect((await agent.act(callOf('drop_issues', 'tools:drop'))).body.reason).toBe('denied_by_policy');
  });

  test('a held call is replayed after its approval', async () => {
    const { agent, organisation } = await connected(world, mcp, {}, [{ effect: 'require_approval' }]);
    const held = await expectStatus(202, agent.act(callOf('write_issue', 'tools:write', { title: 'Hé' })));
    expect(held.body.sentence).toBe('use the tool write_issue (“Write an issue”) with 1 argument');
    mcp.seen = [];
    const id = held.body.approval_id;
    expect((await organisation.ask('POST', `/owner/approvals/${id}/approve`)).status).toBe(200);
    const done = await agent.get(`/v1/approvals/${id}?wait=20`);
    expect(done.body).toMatchObject({ status: 'approved', result: { status: 200 } });
    expect(done.body.result.data.structuredContent).toEqual({ name: 'write_issue', args: { title: 'Hé' } });
    expect(mcp.seen.filter(({ rpc }) => rpc === 'tools/call')).toHaveLength(1);
  });

  test('a repeated Idempotency-Key returns the first answer, and the tool is called once', async () => {
    const { agent } = await connected(world, mcp);
    mcp.seen = [];
    const first = await agent.act(callOf('write_issue', 'tools:write', { n: 1 }), { 'idempotency-key': 'once' });
    const again = await agent.act(callOf('write_issue', 'tools:write', { n: 1 }), { 'idempotency-key': 'once' });
    expect(first.status).toBe(200);
    expect(again.body.data).toEqual(first.body.data);
    expect(mcp.seen.filter(({ rpc }) => rpc === 'tools/call')).toHaveLength(1);
  });

  test('a credential echoed by a tool is redacted', async () => {
    const { agent } = await connected(world, mcp);
    const [search] = mcp.tools;
    search!.run = (_args, request) => ({ got: request.headers.authorization });
    const answer = await agent.act(SEARCH);
    delete search!.run;
    expect(answer.status, answer.text).toBe(200);
    expect(answer.text).not.toContain(CANARY);
    expect(answer.body.data.content[0].text).toContain('[redacted]');
    expect(answer.body._meta.redacted).toBe(true);
  });
});
