/** MCP clients that are web pages: which may use /mcp, the token endpoint and the lab from browsers. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { send } from '../world/agent.ts';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { browserOf } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const LISTED = 'https://client.example';
const OTHER = 'https://evil.example';
const port = await freePort();
const world = givenWorld('sqlite', { MCP_ORIGINS: `${LISTED}, http://localhost:${port}/` });
const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));

const CLIENT_PATHS = ['/mcp', '/oauth/register', '/oauth/token', '/oauth/revoke'];
const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
const ask = (method: string, path: string, headers: Record<string, string>) =>
  send(world.running.baseUrl + path, { method, headers, ...(method === 'POST' && { body: '{}' }) });
const preflight = (path: string, origin: string) =>
  ask('OPTIONS', path, { origin, 'access-control-request-method': 'POST' });
const allowed = ({ headers }: { headers: Headers }) => headers.get('access-control-allow-origin');

describe('pages of other origins', () => {
  test.each(CLIENT_PATHS)('may use %s where their origin is listed, without credentials', async (path) => {
    const { status, headers } = await preflight(path, LISTED);
    expect([status, headers.get('access-control-allow-origin'), headers.get('vary')]).toEqual([204, LISTED, 'Origin']);
    expect(headers.get('access-control-allow-headers')).toBe('Authorization, *');
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    const refused = await ask('POST', path, { origin: LISTED });
    expect([refused.status >= 400, allowed(refused)]).toEqual([true, LISTED]);
    const other = await preflight(path, OTHER);
    expect([other.status, allowed(other)]).toEqual([405, null]);
  });

  test('may use the lab where they are of this machine', async () => {
    const origin = 'http://localhost:5173';
    expect(allowed(await preflight('/lab/mcp', origin))).toBe(origin);
    for (const one of [OTHER, LISTED]) expect((await preflight('/lab/mcp', one)).status).toBe(405);
    for (const path of ['/v1/agents/me', '/owner/agents', '/mcp'])
      expect(allowed(await preflight(path, origin)), path).toBeNull();
  });
});

describeInChromium('in a browser', () => {
  test('a page of a listed origin lists the tools with its token, and reads where to get one; another is refused', async () => {
    const server = createServer((_, response) =>
      response.setHeader('content-type', 'text/html').end('<p>client'),
    ).listen(port);
    await once(server, 'listening');
    afterFile(() => void server.close().closeAllConnections());
    const person = browserOf(world, organisation.owner);
    const { access_token } = await new OAuthClient(world).tokens(person, {}, { name: 'page', grants: EVERYTHING });
    const page = await (await startBrowser()).page({ width: 400, height: 400 });
    const post = (token: string) => `fetch('${world.running.baseUrl}/mcp', {
      method: 'POST',
      headers: { authorization: 'Bearer ${token}', accept: 'application/json, text/event-stream',
        'content-type': 'application/json', 'mcp-protocol-version': '2025-11-25' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    }).then(async (answer) => [answer.status, answer.headers.get('www-authenticate'), await answer.text()], (error) => String(error))`;
    const { port: at } = server.address() as AddressInfo;
    await page.open(`http://localhost:${at}/`);
    const [status, , text] = await page.value<[number, null, string]>(post(access_token));
    expect([status, text]).toEqual([200, expect.stringContaining('read_platform')]);
    const [refused, challenge] = await page.value<[number, string]>(post('none'));
    expect([refused, challenge]).toEqual([401, expect.stringContaining('resource_metadata=')]);
    await page.open(`http://127.0.0.1:${at}/`);
    expect(await page.value(post(access_token))).toBe('TypeError: Failed to fetch');
  });
});
