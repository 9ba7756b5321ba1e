/** Answers with a success status whose body reports a failure: what owners see and what agents get. */
import { describe, expect, test } from 'vitest';
import { callOf, connected } from '../upstream-mcp/connected.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { fresh, givenWorld, type Organisation, shared } from '../world/world.ts';

const HOLDS = [{ effect: 'require_approval' }];
const FAILED = 'with an error in its body';

/** The result of a call that was held and approved. */
async function approved(organisation: Organisation, agent: TestAgent, call: Record<string, unknown>) {
  const held = await expectStatus(202, agent.act(call));
  const id = held.body.approval_id as string;
  const { body } = await organisation.approve(id);
  const { rows } = (await organisation.ask('GET', '/owner/audit?result=allowed&limit=1')).body;
  const { result } = (await agent.get(`/v1/approvals/${id}`)).body;
  return { summary: body.result_summary, message: body.platform_message, failed: rows[0].flags?.failed, result };
}

describe('failures reported in the body by a REST platform', () => {
  const world = givenWorld();
  const organisation = fresh(() => world.organisation());
  const platform = async (manifest: object) => {
    await organisation.platform({ id: 'chat', manifest: { scopes: { 'chat:write': ['POST /**'] }, ...manifest } });
    const policy = await organisation.policy(HOLDS);
    return await organisation.agent({ policy, grants: { chat: { scopeList: ['chat:write'] } } });
  };
  const call = { platform: 'chat', endpoint: '/post', method: 'POST', scope: 'chat:write', data: { text: 'hi' } };
  const answers = (body: unknown, type = 'application/json') => {
    world.upstream.answer = (_request, response) =>
      response.setHeader('content-type', type).end(typeof body === 'string' ? body : JSON.stringify(body));
  };

  test.each([
    ['the sign that the manifest names', { at: '/ok', is: false }, { ok: false, error: 'channel_not_found' }, true],
    ['another value', { at: '/ok', is: false }, { ok: true, error: 'none' }, false],
    ['no such member', { at: '/ok', is: false }, [1, 2], false],
    ['a member of the prototype', { at: '/constructor/name', is: 'Object' }, {}, false],
    ['deeper, with an escaped name', { at: '/a~1b/0/state', is: 'failed' }, { 'a/b': [{ state: 'failed' }] }, true],
  ])('%s', async (_what, failed_if, body, is) => {
    const agent = await platform({ failed_if });
    answers(body);
    const { summary, message, failed, result } = await approved(organisation, agent, call);
    expect(result.data).toEqual(body);
    expect(failed).toBe(is || undefined);
    expect(summary.endsWith(`bytes, ${FAILED}`)).toBe(is);
    expect(message).toBe(is && 'error' in body ? 'channel_not_found' : null);
  });

  test('a body that is not JSON, and a content type that imitates the summary, are not reported as failed', async () => {
    const agent = await platform({ failed_if: { at: '/ok', is: false } });
    answers('ok: false', `text/plain; x="9 bytes, ${FAILED}"`);
    const { failed, message } = await approved(organisation, agent, call);
    expect([failed, message]).toEqual([undefined, null]);
  });

  test('a call allowed without approval is recorded as failed too; the agent gets the answer unchanged', async () => {
    await platform({ failed_if: { at: '/ok', is: false } });
    const policy = await organisation.policy([{ effect: 'allow' }], 'open');
    const agent = await organisation.agent({ policy, grants: { chat: { scopeList: ['chat:write'] } } });
    answers({ ok: false });
    const made = await agent.act(call);
    expect([made.status, made.body.data]).toEqual([200, { ok: false }]);
    const { rows } = (await organisation.ask('GET', '/owner/audit?result=allowed&limit=1')).body;
    expect(rows[0].flags).toEqual({ failed: true });
  });

  test.each([
    ['errors', { data: null, errors: [{ message: 'not allowed' }] }, true],
    ['an empty list of them', { data: {}, errors: [] }, false],
  ])('through the GraphQL path of a REST platform: %s', async (_what, body, is) => {
    await organisation.platform({
      id: 'graph',
      manifest: { graphql: { path: '/graphql' }, scopes: { 'graph:read': ['query viewer'] } },
    });
    const policy = await organisation.policy(HOLDS);
    const agent = await organisation.agent({ policy, grants: { graph: { scopeList: ['graph:read'] } } });
    answers(body);
    const query = { platform: 'graph', endpoint: '/graphql', method: 'POST', scope: 'graph:read' };
    const { failed, message } = await approved(organisation, agent, { ...query, data: { query: '{ viewer { id } }' } });
    expect([failed, message]).toEqual(is ? [true, 'not allowed'] : [undefined, null]);
  });
});

describe('failures reported in the body by an MCP server', () => {
  const mcp = shared(() => startMcpServer());
  const world = givenWorld('sqlite', () => ({ AGENT_BROKER_ALLOW_PRIVATE: mcp.address }));
  const given = fresh(() => connected(world, mcp, {}, HOLDS));

  test('a tool call that answers with an error is recorded as failed; a working one is not', async () => {
    const { organisation, agent } = given;
    const call = callOf('write_issue', 'tools:write', { title: 'x' });
    expect(await approved(organisation, agent, call)).toMatchObject({ failed: undefined, message: null });
    mcp.tools[1]!.run = () => {
      throw new Error('no such repository');
    };
    const failed = await approved(organisation, agent, call);
    expect(failed).toMatchObject({ failed: true, message: 'no such repository' });
    expect(failed.summary).toContain(FAILED);
    expect(failed.result.data.isError).toBe(true);
  });
});
