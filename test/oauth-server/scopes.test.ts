/** Scopes of a remote client: with `mcp:write` only, and with both scopes. */
import { Client } from '@modelcontextprotocol/client';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Answer } from '../world/agent.ts';
import { deskOf } from '../world/mcp/held.ts';
import { envelope } from '../world/mcp/mcp.ts';
import { browserOf, connectClient } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items' };
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

describe.each(ONE_STORE)(`scopes of a remote client on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const organisation = shared(() =>
    world.demoOrganisation({
      rules: [{ effect: 'require_approval', methods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] }],
    }),
  );
  const desk = shared(() => deskOf(world, organisation));
  beforeAll(() => {
    baseUrl = world.running.baseUrl;
  });

  const tokenFor = async (scopes: string[]): Promise<string> => {
    const name = `scoped-${crypto.randomUUID().slice(0, 8)}`;
    const browser = browserOf(world, organisation.owner);
    return (await new OAuthClient(world).tokens(browser, {}, { name, grants: EVERYTHING, scopes })).access_token;
  };
  /** Returns two tokens of one agent: one with all scopes, and one that was narrowed by a refresh. */
  const narrowed = async (scope: string) => {
    const client = new OAuthClient(world);
    const tokens = await client.tokens(browserOf(world, organisation.owner), {}, { grants: EVERYTHING });
    const less = (await client.refresh(tokens.refresh_token, { scope })).body;
    expect(less.scope).toBe(scope);
    return { whole: tokens.access_token, less: less.access_token as string };
  };
  /** Sends a message as a client of 2026-07-28. */
  const ask = (token: string, method: string, params: Json) =>
    callMcp(
      baseUrl,
      token,
      { method, params: { ...params, _meta: envelope(TASKS) } },
      {
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': method,
        ...(typeof (params.name ?? params.taskId) === 'string' && { 'mcp-name': params.name ?? params.taskId }),
      },
    );
  const call = (name: string, args: object, more: object = {}) => ({ name, arguments: args, ...more });
  const resultOf = ({ text }: Answer): Json =>
    JSON.parse(text.startsWith('{') ? text : /^data: (\{.*"result".*)$/m.exec(text)![1]!).result;
  const expectRefused = (answer: Answer, needed: string) => {
    expect([answer.status, answer.body.error], answer.text).toEqual([403, 'insufficient_scope']);
    const challenge = answer.headers.get('www-authenticate');
    expect(challenge).toContain('error="insufficient_scope"');
    expect(challenge).toContain(`scope="${needed}"`);
  };
  const heldTask = async (token: string, name: string, args: object): Promise<string> => {
    const made = resultOf(await ask(token, 'tools/call', call(name, args)));
    expect(made).toMatchObject({ resultType: 'task', status: 'working' });
    return made.taskId;
  };

  test.each([
    ['that shakes hands', (token: string) => callMcp(baseUrl, token)],
    ['of 2026-07-28', (token: string) => ask(token, 'tools/list', {})],
  ])('a client %s without mcp:read gets the tools, without its agent’s permissions', async (_era, list) => {
    const described = async (scopes: string[]) => {
      const { tools } = resultOf(await list(await tokenFor(scopes)));
      expect(tools).toHaveLength(6);
      return JSON.stringify(tools);
    };
    for (const scopes of [['mcp:read'], ['mcp:read', 'mcp:write']])
      expect(await described(scopes)).toContain('- demo: demo:delete');
    const untold = await described(['mcp:write']);
    expect(untold).not.toMatch(/\bdemo\b/);
    expect(untold).toContain('Your permissions are not listed here');
  });

  test('a client without mcp:read is refused the tools that read', async () => {
    const token = await tokenFor(['mcp:write']);
    for (const [name, args] of [
      ['list_permissions', {}],
      ['read_platform', READ],
      ['request_access', { platform: 'demo', scope: 'demo:read' }],
    ] as const) {
      const message = { method: 'tools/call', params: call(name, args) };
      expectRefused(await callMcp(baseUrl, token, message), 'mcp:read mcp:write');
    }
  });

  test('a client without mcp:read is refused subscriptions to list changes, and not offered them', async () => {
    const token = await tokenFor(['mcp:write']);
    const listen = (filter: object) => ask(token, 'subscriptions/listen', { notifications: filter });
    for (const filter of [{ toolsListChanged: true }, {}]) expectRefused(await listen(filter), 'mcp:read mcp:write');

    // So that a client which subscribes whenever that is offered does not get a request for more scopes.
    const name = `untold-${store}`;
    const onChanged = () => expect.unreachable('nothing is told');
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } }, listChanged: { tools: { onChanged } } },
    );
    onTestFinished(() => client.close());
    const decision = { name, grants: EVERYTHING, scopes: ['mcp:write'] };
    await connectClient(world, browserOf(world, organisation.owner), { client, decision });
    expect(client.getServerCapabilities()?.tools).toEqual({});
    expect((await client.listTools()).tools).toHaveLength(6);
  });

  test('a client without mcp:read gets the result of its own held write, by its task and by check_approval', async () => {
    const token = await tokenFor(['mcp:write']);
    const args = desk.held();
    const taskId = await heldTask(token, 'write_platform', args);
    expect(resultOf(await ask(token, 'tasks/get', { taskId }))).toMatchObject({ status: 'working' });
    expect((await ask(token, 'tasks/cancel', { taskId })).status).toBe(200);
    await desk.decide(taskId, 'approve');
    const answered = { structuredContent: { status: 'answered', approval_id: taskId } };
    const checking = ask(token, 'tools/call', call('check_approval', { approval_id: taskId }));
    expect(resultOf(await checking)).toMatchObject(answered);
    expect(resultOf(await ask(token, 'tasks/get', { taskId }))).toMatchObject({
      status: 'completed',
      result: answered,
    });
    expect(desk.sentFor(args)).toBe(1);
  });

  test('the result of a held read needs mcp:read, in each way of asking for it', async () => {
    const { whole, less } = await narrowed('mcp:write');
    const taskId = await heldTask(whole, 'read_platform', READ);
    await desk.decide(taskId, 'approve');
    const write = desk.held();
    const requestState = `${taskId}.${'0'.repeat(64)}`;
    const ways: [string, object][] = [
      ['tasks/get', { taskId }],
      ['tasks/get', { taskId: taskId.toUpperCase() }],
      ['tasks/cancel', { taskId }],
      ['tasks/update', { taskId, inputResponses: {} }],
      ['tools/call', call('check_approval', { approval_id: taskId })],
      ['tools/call', call('check_approval', { approval_id: taskId.toUpperCase() })],
      ['tools/call', call('write_platform', write, { requestState })],
    ];
    for (const [method, params] of ways) expectRefused(await ask(less, method, params), 'mcp:read mcp:write');
    expect(desk.sentFor(write)).toBe(0);
    const done = resultOf(await ask(whole, 'tasks/get', { taskId }));
    expect(done).toMatchObject({ result: { structuredContent: { status: 'answered', data: { method: 'GET' } } } });

    // To another agent the task does not exist, so that it learns nothing about the read.
    const neighbour = await tokenFor(['mcp:write']);
    expect((await ask(neighbour, 'tasks/get', { taskId })).text).toContain('Task not found');
    for (const odd of ['x', '00000000-0000-4000-8000-000000000000'])
      expect((await ask(neighbour, 'tasks/get', { taskId: odd })).text).toContain('Task not found');
    const nul = await ask(neighbour, 'tools/call', call('check_approval', { approval_id: '\u0000' }));
    expect(nul.text).toContain('invalid_arguments');
  });

  test('a client with only mcp:read gets results of held calls, and cannot write', async () => {
    const { whole, less } = await narrowed('mcp:read');
    const taskId = await heldTask(whole, 'write_platform', desk.held());
    await desk.decide(taskId, 'deny');
    expect(resultOf(await ask(less, 'tasks/get', { taskId }))).toMatchObject({ status: 'completed' });
    expectRefused(await ask(less, 'tools/call', call('write_platform', desk.held())), 'mcp:read mcp:write');
  });
});
