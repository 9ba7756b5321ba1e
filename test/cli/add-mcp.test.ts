/** `agent-broker add-mcp`, with this test as the browser. */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { ownersBrowser, startConsenting } from '../world/browser/consenting.ts';
import { leaksOf } from '../world/canary.ts';
import { commandHost, type Served, startServe } from '../world/command.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startSdkAuthServer } from '../world/servers/sdk-auth-server.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const TOKEN = 'CANARY-mcp-token-0123456789-abcdefghij';

const folder = newFolder();
const hosted = commandHost();
const data = join(folder, 'data');
let strict: string;
let served: Served;

const oauth = shared(() => startSdkAuthServer());
const tools = shared(() => startMcpServer());
beforeAll(async () => {
  const gate = createServer((request, response) => {
    if (request.headers['x-api-key'] !== TOKEN) return void response.writeHead(401).end();
    fetch(tools.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...pick(request.headers),
      },
      body: request,
      duplex: 'half',
    } as unknown as RequestInit).then(
      async (answer) => {
        response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'application/json' });
        response.end(await answer.text());
      },
      () => response.writeHead(502).end(),
    );
  });
  const port = await listenOnLoopback(gate);
  const address = `127.0.0.1:${port}`;
  strict = `http://${address}/mcp`;
  afterFile(tools.close);
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: `${oauth.address},${address}` };
  served = await startServe(['--no-sandbox'], { cwd: folder, env }, 'agent-broker plan');
});

/** Returns the headers of MCP (`mcp-…`). */
const pick = (headers: Record<string, string | string[] | undefined>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).filter(
      (one): one is [string, string] => one[0].startsWith('mcp-') && typeof one[1] === 'string',
    ),
  );

const run = (words: readonly string[], env: Record<string, string> = {}) =>
  hosted(['add-mcp', ...words], { cwd: folder, env: { AGENT_BROKER_DATA: data, ...env } });

test('by OAuth: prints the consent URL, waits, and prints what agents may be granted', async () => {
  const setting = { cwd: folder, env: { AGENT_BROKER_DATA: data } };
  const { url, printed, ended } = await startConsenting(['add-mcp', oauth.url, '--id', 'notes'], setting);
  expect(url, printed().stderr).toContain('/authorize?');
  // Another attempt with another client, or with a token, would use neither: it is refused.
  const client = await run([oauth.url, '--id', 'notes', '--client-id', 'another']);
  expect([client.code, client.stderr]).toEqual([
    1,
    expect.stringMatching(/client_id of its auth is not set, not "another".*Change it/),
  ]);
  const token = await run([oauth.url, '--id', 'notes', '--token-env', 'KEY'], { KEY: TOKEN });
  expect([token.code, token.stderr]).toEqual([
    1,
    expect.stringContaining('type of its auth is "oauth2", not "bearer"'),
  ]);
  const browser = await ownersBrowser(served, setting);
  expect((await browser.get(url)).text).toContain('The platform is connected.');
  expect(await ended, printed().stderr).toBe(0);
  const { stdout } = printed();
  expect(stdout).toContain(`Added notes (an MCP server at ${oauth.url}), connection "notes".`);
  expect(stdout).toContain('notes:tools');
  expect(stdout).toContain('--grant notes=tools');
  const again = await run([oauth.url, '--id', 'notes']);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('its connection "notes" is connected')]);
});

test('with a token: tries the token; a token that the server refuses creates nothing', async () => {
  const words = [strict, '--id', 'gated', '--header', 'X-API-Key', '--token-env', 'KEY'];
  const refused = await run(words, { KEY: 'another-key-0123456789' });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('Nothing was kept.')]);
  const added = await run([...words, '--json'], { KEY: TOKEN });
  expect(added.code, added.stderr).toBe(0);
  expect(JSON.parse(added.stdout)).toMatchObject({
    platform: 'gated',
    base_url: strict,
    connection: 'gated',
    scope: 'gated:tools',
    test: { ok: true },
  });
  expect(leaksOf(TOKEN, added.stdout + added.stderr)).toEqual([]);
});

test('a server without OAuth fails with the options for a token, and creates nothing', async () => {
  const refused = await run([strict, '--id', 'gate']);
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringContaining('A server that takes a token: --token-stdin'),
  ]);
  const env = { AGENT_BROKER_DATA: data };
  const listed = await hosted(['connection', 'list'], { cwd: folder, env });
  expect(listed.stdout).not.toContain('gate ');
  expect(
    (await run([strict, '--id', 'gate', '--token-env', 'KEY', '--header', 'x-api-key'], { KEY: TOKEN })).code,
  ).toBe(0);
});

test.each<[string[], string]>([
  [['nowhere'], 'write https://host/mcp'],
  [['ftp://mcp.example/mcp'], 'write https://host/mcp'],
  [['http://127.0.0.1:9/mcp'], 'choose an id'],
  [['https://mcp.example/mcp', '--token-env', 'X', '--dynamic'], 'Choose a token or OAuth'],
  [['https://mcp.example/mcp', '--header', 'X-API-Key'], '--header is for a token'],
])('%j is wrong usage', async (words, why) => {
  const wrong = await run(words);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining(why)]);
});
