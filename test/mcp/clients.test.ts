/** `agent-broker mcp` with real clients: both generations of the SDK, both protocol eras, the Inspector. */
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as SecondTransport } from '@modelcontextprotocol/client/stdio';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { withoutCalls } from '../world/evidence.ts';
import { inspect } from '../world/mcp/inspector.ts';
import { BARE, callTool, envelope, shakeHands, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { CANARY, givenWorld, shared } from '../world/world.ts';

const TOOLS = [
  'read_platform',
  'write_platform',
  'delete_platform',
  'check_approval',
  'list_permissions',
  'request_access',
];
const TIMEOUT = { timeout: 15_000, interval: 50 };
const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items/1?full=true' };

let agent: TestAgent;
let profile: string;
const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
beforeAll(async () => {
  const rules = [
    { effect: 'allow', methods: ['GET', 'PATCH'] },
    { effect: 'require_approval', methods: ['POST', 'DELETE'] },
  ];
  agent = await organisation.agent({ policy: await organisation.policy(rules) });
  profile = writeProfile(agent);
});

const server = () => ({ command: process.execPath, args: [BIN, 'mcp', '--profile', profile], env: BARE });

type AnyClient = Pick<SecondClient, 'listTools' | 'callTool' | 'close' | 'getServerVersion'>;

async function second(
  mode: 'legacy' | 'auto',
  after: (close: () => Promise<void>) => void = onTestFinished,
): Promise<AnyClient> {
  const client = new SecondClient({ name: 'second', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(new SecondTransport(server()));
  after(() => client.close());
  expect(client.getNegotiatedProtocolVersion()).toBe(mode === 'auto' ? '2026-07-28' : '2025-11-25');
  return client;
}

let connected: Promise<AnyClient> | undefined;
/** One client for the tests that only list and call tools. */
const sharedClient = (): Promise<AnyClient> => (connected ??= second('legacy', afterFile));

async function first(): Promise<AnyClient> {
  const client = new FirstClient({ name: 'first', version: '1' });
  await client.connect(new FirstTransport(server()));
  onTestFinished(() => client.close());
  return client as unknown as AnyClient;
}

describe.each([
  ['the first generation of the SDK', () => first()],
  ['the second generation, shaking hands', () => second('legacy')],
  ['the second generation, stateless', () => second('auto')],
] as const)('%s', (_name, connect) => {
  test('the tool list includes the agent’s permissions, and the tools can be called', async () => {
    const client = await connect();
    // On a busy machine the permissions are added to the list later.
    const { tools } = await vi.waitUntil(async () => {
      const listed = await client.listTools();
      return listed.tools[0]!.description!.includes('- demo:') ? listed : undefined;
    }, TIMEOUT);
    expect(tools.map(({ name }) => name)).toEqual(TOOLS);
    for (const { name, description, inputSchema, outputSchema } of tools) {
      expect(inputSchema, name).toMatchObject({ type: 'object', additionalProperties: false });
      expect(outputSchema, name).toMatchObject({ type: 'object' });
      // Validators of clients know draft 7 alone (Genkit, early releases of the first SDK), or draft 2020-12.
      for (const Validator of [Ajv, Ajv2020])
        for (const schema of [inputSchema, outputSchema])
          new Validator({ strict: false, validateFormats: false }).compile(schema as object);
      if (name.endsWith('_platform'))
        expect(description).toContain('- demo: demo:delete (waits for a person), demo:read, demo:write (may wait)');
    }
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]));
    expect(hints).toMatchObject({ read_platform: true, write_platform: false, delete_platform: false });

    // The client itself validates the answer against the output schema.
    const read = await client.callTool({ name: 'read_platform', arguments: READ });
    const data = { method: 'GET', target: '/v1/items/1?full=true', body: null };
    expect(read.structuredContent).toMatchObject({ status: 'answered', upstream_status: 200, data });
    expect(JSON.parse((read.content as { text: string }[])[0]!.text)).toEqual(read.structuredContent);

    world.upstream.answer = (_request, response) => {
      response.writeHead(200, { link: '<https://up.test/?after=1>; rel="next"', 'x-other': 'x' }).end('[]');
    };
    const paged = await client.callTool({ name: 'read_platform', arguments: READ });
    world.upstream.answer = undefined;
    expect(paged.structuredContent).toMatchObject({
      data: [],
      upstream_headers: { link: '<https://up.test/?after=1>; rel="next"' },
    });
    expect(read.structuredContent).not.toHaveProperty('upstream_headers');

    const refused = await client.callTool({ name: 'read_platform', arguments: { ...READ, scope: 'demo:none' } });
    expect(refused).toMatchObject({ isError: true, structuredContent: { status: 'refused' } });
    const may = await client.callTool({ name: 'list_permissions', arguments: {} });
    expect(may.structuredContent).toMatchObject({
      status: 'permissions',
      permissions: { agent: { agent_id: agent.agentId }, platforms: [{ platformId: 'demo' }] },
    });
    await expect(client.callTool({ name: 'run_shell', arguments: {} })).rejects.toThrow(/no tool "run_shell"/);
    expect(JSON.stringify([tools, read, refused, may])).not.toContain(CANARY);
  });
});

test('no tool schema has `propertyNames`, because models behind some clients then refuse every tool', async () => {
  const { tools } = await (await sharedClient()).listTools();
  const { data, headers } = tools.find(({ name }) => name === 'write_platform')!.inputSchema.properties!;
  expect(data).toMatchObject({ type: 'object', additionalProperties: true });
  expect(headers).toMatchObject({ type: 'object', additionalProperties: { type: 'string' } });
  expect(JSON.stringify(tools)).not.toContain('propertyNames');
});

test('read_platform and write_platform send the requested method and endpoint', async () => {
  const client = await sharedClient();
  for (const [name, more, method, endpoint] of [
    ['read_platform', {}, 'GET', '/items/7'],
    ['write_platform', { data: { title: 'x' }, method: 'PATCH' }, 'PATCH', '/items/7'],
  ] as const) {
    const scope = method === 'GET' ? 'demo:read' : 'demo:write';
    const before = world.upstream.seen.length;
    const answer = await client.callTool({ name, arguments: { platform: 'demo', scope, endpoint, ...more } });
    expect(answer.structuredContent, name).toMatchObject({ status: 'answered' });
    expect(world.upstream.seen.slice(before), name).toMatchObject([{ method, target: `/v1${endpoint}` }]);
  }
});

test('write_platform defaults to POST and rejects GET and DELETE; the other tools accept no method', async () => {
  const client = await sharedClient();
  const call = (name: string, more: Record<string, unknown>) =>
    client.callTool({ name, arguments: { platform: 'demo', scope: 'demo:write', endpoint: '/items', ...more } });
  const refused = await call('write_platform', { scope: 'demo:read' });
  expect(refused.structuredContent).toMatchObject({
    status: 'refused',
    detail: expect.stringContaining('POST /items'),
  });
  for (const [name, method] of [
    ['write_platform', 'GET'],
    ['write_platform', 'DELETE'],
    ['read_platform', 'POST'],
    ['delete_platform', 'GET'],
  ] as const) {
    const answer = await withoutCalls(world, () => call(name, { method }));
    expect(answer.structuredContent, `${name} ${method}`).toMatchObject({
      status: 'failed',
      code: 'invalid_arguments',
    });
    expect(answer.isError).toBe(true);
  }
});

test('the Inspector’s command line lists the tools without warnings about their schemas, and calls one', async () => {
  const { command, args } = server();
  const listed = await inspect([command, ...args, '--method', 'tools/list', '--strict']);
  expect(JSON.parse(listed.stdout).result.tools.map(({ name }: { name: string }) => name)).toEqual(TOOLS);
  expect(listed.stderr).not.toMatch(/warning|error/i);
  const pairs = Object.entries(READ).map(([name, value]) => `${name}=${value}`);
  const words = ['--method', 'tools/call', '--tool-name', 'read_platform', '--tool-arg', ...pairs];
  const called = await inspect([command, ...args, ...words, '--protocol-era', 'modern']);
  expect(called.stdout).toContain('/v1/items/1?full=true');
}, 180_000);

test('every protocol revision with a handshake is supported, and an unknown one is negotiated down', async () => {
  for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
    const mcp = startMcp(profile);
    expect((await shakeHands(mcp, {}, version)).protocolVersion).toBe(version);
    expect((await callTool(mcp, 'read_platform', READ)).structuredContent.status).toBe('answered');
  }
  const mcp = startMcp(profile);
  expect((await shakeHands(mcp, {}, '2099-01-01')).protocolVersion).toBe('2025-11-25');
});

test('a stateless client with a subscription is notified of a changed tool list, too', async () => {
  const policy = await organisation.policy([{ effect: 'allow' }]);
  const grown = await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
  const mcp = startMcp(writeProfile(grown));
  const _meta = envelope();
  await mcp.request('tools/list', { _meta });
  const listening = mcp.next(({ method }) => method === 'notifications/subscriptions/acknowledged');
  void mcp.request('subscriptions/listen', { _meta, notifications: { toolsListChanged: true } });
  await listening;
  await organisation.ask('POST', `/owner/agents/${grown.id}/grants/demo`, { scopes: ['demo:read', 'demo:delete'] });
  const news = mcp.next(({ method }) => method === 'notifications/tools/list_changed');
  await mcp.request('tools/call', { name: 'list_permissions', arguments: {}, _meta });
  await news;
});

test('a change of the agent’s permissions is notified, and included in the next tool list', async () => {
  const policy = await organisation.policy([{ effect: 'allow' }]);
  const grown = await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
  const mcp = startMcp(writeProfile(grown));
  await shakeHands(mcp);
  const described = async () => (await mcp.request('tools/list')).result.tools[0].description as string;
  await vi.waitUntil(async () => /- demo: demo:read$/m.test(await described()), TIMEOUT);
  const terms = { scopes: ['demo:read', 'demo:delete'] };
  await expectStatus(200, organisation.ask('POST', `/owner/agents/${grown.id}/grants/demo`, terms));
  const news = mcp.next(({ method }) => method === 'notifications/tools/list_changed');
  await callTool(mcp, 'list_permissions', {});
  await news;
  expect(await described()).toMatch(/- demo: demo:delete, demo:read$/m);
});
