/** The result of testing the connection of an MCP server, by listing its tools. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { ALLOW_ALL, startWorld, type World } from '../world/world.ts';
import { callOf, SCOPES } from './connected.ts';

const SECRET = 'a-token-of-the-connection';

describe('testing the connection of an MCP server', () => {
  let world: World;
  let port: number;
  let answer: RequestListener;
  const server = createServer((request, response) => answer(request, response));
  beforeAll(async () => {
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    ({ port } = server.address() as AddressInfo);
    return () => void server.close();
  });
  const worldWith = async (address: string): Promise<World> => {
    world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: address });
    return world;
  };
  const tested = async (url: string) => {
    const organisation = await world.organisation();
    await organisation.platform({
      id: 'tools',
      manifest: { kind: 'mcp', base_url: url, scopes: SCOPES },
      secret: SECRET,
    });
    const [{ id }] = (await organisation.ask('GET', '/owner/connections')).body.connections;
    const { body } = await expectStatus(200, organisation.ask('POST', `/owner/connections/${id}/test`));
    return { organisation, body };
  };

  test('reports the number of listed tools, and stores none of them', async () => {
    const mcp = await startMcpServer();
    await worldWith(new URL(mcp.url).host);
    const { organisation, body } = await tested(mcp.url);
    expect(body).toMatchObject({
      ok: true,
      upstream_status: 200,
      detail: `The server lists ${mcp.tools.length} tools.`,
    });
    // The stored definitions are those of the first call, not of the test.
    mcp.tools[0]!.description = 'Other words';
    const grants = { tools: { scopeList: Object.keys(SCOPES) } };
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants });
    await expectStatus(200, agent.act(callOf('search_issues', 'tools:search.read', { query: 'open' })));
  });

  test('ends the session that it began, and so does reading the tools for an owner', async () => {
    const mcp = await startMcpServer('sessions');
    await worldWith(new URL(mcp.url).host);
    const { organisation, body } = await tested(mcp.url);
    expect(body.ok).toBe(true);
    expect((await organisation.ask('POST', '/owner/platforms/tools/tools/refresh')).status).toBe(200);
    const began = mcp.seen.filter(({ rpc, headers }) => rpc === 'tools/list' && 'mcp-session-id' in headers);
    const ended = mcp.seen.filter(({ rpc }) => rpc === 'DELETE');
    const sessionsOf = (requests: typeof began) => requests.map(({ headers }) => headers['mcp-session-id']);
    expect(began).toHaveLength(2);
    expect(sessionsOf(ended)).toEqual(sessionsOf(began));
    expect(ended.map(({ headers }) => [headers['mcp-protocol-version'], headers.authorization])).toEqual(
      began.map(({ headers }) => [headers['mcp-protocol-version'], `Bearer ${SECRET}`]),
    );
  });

  test('explains an address of the older transport', async () => {
    answer = (_request, response) => response.writeHead(404).end();
    await worldWith(`127.0.0.1:${port}`);
    const { body } = await tested(`http://127.0.0.1:${port}/sse`);
    expect(body).toMatchObject({ ok: false, detail: expect.stringMatching(/HTTP\+SSE.*not supported.*\/mcp/) });
  });

  test.each<[string, RequestListener, object]>([
    [
      'refuses the token when it is asked for tools, and takes no GET',
      ({ method }, response) => response.writeHead(method === 'GET' ? 405 : 401).end(),
      { upstream_status: 401, detail: expect.stringContaining('it refused the credential. Replace it.') },
    ],
    [
      'is none',
      (_request, response) => response.writeHead(404).end('no such page'),
      {
        upstream_status: 404,
        detail: expect.stringContaining('there is no MCP server at this address. Check base_url.'),
      },
    ],
    [
      'is a page',
      (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Welcome'),
      { ok: false },
    ],
    [
      'fails',
      (_request, response) => response.writeHead(503).end(),
      { upstream_status: 503, detail: expect.stringContaining('it was reached, but failed.') },
    ],
    [
      'limits requests',
      (_request, response) => response.writeHead(429, { 'retry-after': '30' }).end(),
      { upstream_status: 429, detail: expect.stringContaining('it limits requests. Try again later.') },
    ],
    [
      'redirects',
      (_request, response) => response.writeHead(308, { location: '/elsewhere' }).end(),
      { upstream_status: 308, detail: expect.stringContaining('a redirect, which calls do not follow.') },
    ],
    ['hangs up', (request) => void request.socket.destroy(), { upstream_status: null }],
  ])('reports a server that %s', async (_name, how, told) => {
    answer = how;
    await worldWith(`127.0.0.1:${port}`);
    const { body } = await tested(`http://127.0.0.1:${port}/mcp`);
    expect(body).toMatchObject({ ok: false, ...told });
    expect(JSON.stringify(body)).not.toContain(SECRET);
  });
});
