/** Start-up of `agent-broker mcp`: what a client waits for, and how few modules are loaded before that. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { SUPPORTED_PROTOCOL_VERSIONS } from '@modelcontextprotocol/server';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { HANDSHAKES } from '../../mcp/stdio/first-answers.ts';
import SCHEMAS from '../../mcp/tools/tool-schemas.json' with { type: 'json' };
import { toolSchemas } from '../../mcp/tools/tool-schemas.ts';
import type { TestAgent } from '../world/agent.ts';
import { PROGRAMS } from '../world/checkout.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { callTool, envelope, type McpProcess, shakeHands, startMcp, writeProfile } from '../world/mcp/mcp.ts';
import { newFolder } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items/1' };
const TIMEOUT = { timeout: 15_000, interval: 50 };

let agent: TestAgent;
beforeAll(async () => {
  const world = await startWorld();
  const organisation = await world.organisation();
  await organisation.platform();
  agent = await organisation.agent();
});

test('the stored tool schemas equal the validating ones (otherwise run: node mcp/tools/write-tool-schemas.ts)', () => {
  expect(SCHEMAS).toEqual(JSON.parse(JSON.stringify(toolSchemas())));
});

describe('before the SDK is loaded', () => {
  test('every protocol revision with a handshake is answered', () => {
    expect(HANDSHAKES).toEqual(SUPPORTED_PROTOCOL_VERSIONS);
  });

  test.each(HANDSHAKES as string[])('a client of %s gets the same answers as from the SDK', async (version) => {
    // Without a profile the permissions cannot be read, so the lists do not depend on timing.
    const [first, second] = [startMcp('none.json'), startMcp('none.json')];
    // A message before the handshake is handled by the SDK, and so are all that follow.
    expect((await second.request('ping')).result).toEqual({});
    const answers = async (mcp: McpProcess) => [
      await shakeHands(mcp, { elicitation: {} }, version),
      (await mcp.request('tools/list')).result,
    ];
    expect(await answers(first)).toEqual(await answers(second));
  });

  test('the tool list includes the permissions, and calls work as after any handshake', async () => {
    const mcp = startMcp(writeProfile(agent));
    await shakeHands(mcp);
    const first = (await mcp.request('tools/list')).result;
    expect(first.tools).toHaveLength(6);
    // On a busy machine the permissions are added to the list later.
    const { tools } = await vi.waitUntil(async () => {
      const { result } = await mcp.request('tools/list');
      return result.tools[0].description.includes('demo:read') ? result : undefined;
    }, TIMEOUT);
    expect((await callTool(mcp, 'read_platform', READ)).structuredContent).toMatchObject({ status: 'answered' });
    // Each request was answered once, and a repeated list is the same.
    expect((await mcp.request('tools/list')).result.tools).toEqual(tools);
    const ids = mcp.lines.map((line) => JSON.parse(line).id);
    expect(ids).toEqual([...new Set(ids)]);
    mcp.child.stdin!.end();
    expect(await mcp.ended).toBe(0);
  });

  test('permissions that arrive after the list is sent cause a change notification', async () => {
    const answer = Promise.withResolvers<void>();
    const server = createServer(async (request, response) => {
      await answer.promise;
      const { headers, status, text } = await agent.get(request.url!);
      response.writeHead(status, { 'content-type': 'application/json', etag: headers.get('etag') ?? '' }).end(text);
    });
    const port = await listenOnLoopback(server);
    const url = `http://127.0.0.1:${port}`;
    const mcp = startMcp(writeProfile(agent, undefined, { url }));
    await shakeHands(mcp);
    const list = async () => (await mcp.request('tools/list')).result.tools[0].description;
    expect(await list()).toContain('call list_permissions');
    const changed = mcp.next(({ method }) => method === 'notifications/tools/list_changed');
    answer.resolve();
    await changed;
    expect(await list()).toContain('demo:read');
  });

  test('only clients of 2026-07-28 are offered tasks, which the handshake of earlier revisions cannot accept', async () => {
    const extensions = { 'io.modelcontextprotocol/tasks': {} };
    const discovered = await startMcp(writeProfile(agent)).request('server/discover', { _meta: envelope() });
    expect(discovered.result.capabilities).toEqual({ tools: { listChanged: true }, extensions });
    const clientInfo = { name: 'x', version: '1' };
    const greet = async (more: object) => {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo, ...more };
      return (await startMcp(writeProfile(agent)).request('initialize', params)).result.capabilities;
    };
    // The second one is answered by the SDK, the first one before the SDK is loaded.
    expect([await greet({}), await greet({ _meta: {} })]).toEqual(Array(2).fill({ tools: { listChanged: true } }));
  });

  test('the process ends when the client disconnects, with or without a handshake', async () => {
    const silent = startMcp(writeProfile(agent));
    silent.child.stdin!.end();
    expect(await silent.ended).toBe(0);
    const mcp = startMcp(writeProfile(agent));
    await mcp.request('initialize', {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'x', version: '1' },
    });
    mcp.child.stdin!.end();
    expect(await mcp.ended).toBe(0);
  });

  test.each([
    ['a call', ['initialize', 'notifications/initialized', 'tools/call']],
    ['a list, then a call', ['initialize', 'notifications/initialized', 'tools/list', 'tools/call']],
    ['a list', ['initialize', 'notifications/initialized', 'tools/list']],
    ['a call by a client without a handshake', ['tools/call']],
  ])('what was received before the input ended is answered, as in a pipe: %s', async (_what, methods) => {
    const mcp = startMcp(writeProfile(agent));
    const paramsOf: Record<string, object> = {
      initialize: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } },
      'tools/call': { name: 'read_platform', arguments: READ },
    };
    const lines = methods.map((method, at) => {
      const id = method.startsWith('notifications/') ? {} : { id: at };
      return JSON.stringify({ jsonrpc: '2.0', ...id, method, params: paramsOf[method] ?? {} });
    });
    mcp.write(`${lines.join('\n')}\n`);
    mcp.child.stdin!.end();
    expect(await mcp.ended).toBe(0);
    const answers = mcp.lines.map((line) => JSON.parse(line)).filter(({ id }) => id !== undefined);
    const asked = methods.flatMap((method, at) => (method.startsWith('notifications/') ? [] : [at]));
    expect(answers.map(({ id }) => id)).toEqual(asked);
    if (methods.includes('initialize') && methods.includes('tools/call'))
      expect(answers.at(-1).result.structuredContent).toMatchObject({ status: 'answered' });
  });

  test('the tools are listed with few modules loaded, and without dependencies', async () => {
    const folder = newFolder();
    const log = join(folder, 'modules.log');
    const watch = join(folder, 'watch.mjs');
    writeFileSync(
      watch,
      `import { appendFileSync } from 'node:fs';
       import { registerHooks } from 'node:module';
       const log = ${JSON.stringify(log)};
       registerHooks({ load: (url, context, next) => { appendFileSync(log, url + '\\n'); return next(url, context); } });
       const { write } = process.stdout;
       process.stdout.write = function (text, ...more) {
         if (String(text).includes('"tools":[')) appendFileSync(log, 'LISTED\\n');
         return write.call(this, text, ...more);
       };`,
    );
    const mcp = startMcp(writeProfile(agent), [], { NODE_OPTIONS: `--import=${pathToFileURL(watch)}` });
    await shakeHands(mcp);
    await mcp.request('tools/list');
    await callTool(mcp, 'read_platform', READ);
    const [before = '', after = ''] = readFileSync(log, 'utf8').split('LISTED\n');
    const files = before.split('\n').filter((url) => url.startsWith('file:') && !url.endsWith('watch.mjs'));
    expect(files.filter((url) => url.includes('/node_modules/'))).toEqual([]);
    expect(files.filter((url) => !url.startsWith(String(pathToFileURL(PROGRAMS))))).toEqual([]);
    expect(files.length).toBeLessThanOrEqual(15);
    const bytes = files.map((url) => readFileSync(fileURLToPath(url)).length);
    expect(bytes.reduce((sum, one) => sum + one, 0)).toBeLessThan(100_000);
    // Control case: a request that needs the SDK loads it.
    expect(after).toContain('/dist/serve-tools-');
  });

  test('compiled code is cached for the next start, in a folder of the user’s own', async () => {
    const home = newFolder();
    const mcp = startMcp(writeProfile(agent), [], { HOME: home, XDG_CACHE_HOME: '' });
    await shakeHands(mcp);
    await callTool(mcp, 'read_platform', READ);
    // Clients may end the process in this way.
    mcp.child.kill('SIGKILL');
    await mcp.ended;
    const kept = join(home, '.cache', 'agent-broker');
    expect(existsSync(kept)).toBe(true);
    expect(readdirSync(kept, { recursive: true }).length).toBeGreaterThan(15);
    const without = startMcp(writeProfile(agent), [], { HOME: '/dev/null', XDG_CACHE_HOME: '' });
    await shakeHands(without);
    expect((await without.request('tools/list')).result.tools).toHaveLength(6);
  });
});
