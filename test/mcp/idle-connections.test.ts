/** Idle connections of clients to the broker, behind a proxy that does not announce its idle timeout. */
import { createServer, type Server } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { agentClient } from '../../mcp/client/agent-client.ts';
import type { BrokerRequest } from '../../mcp/client/send.ts';
import { signedSend } from '../../mcp/client/signed-send.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';

/** Returns the server's address; closes the server at the end of the file. */
async function listening(server: Server): Promise<string> {
  const port = await listenOnLoopback(server);
  return `http://127.0.0.1:${port}`;
}

test('an idle connection is closed, one with an open request is not', async () => {
  let connections = 0;
  let ended = 0;
  // Without a keep-alive timeout, so that the server announces none.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    if (request.url === '/slow') await wait(500);
    response.end('{}');
  });
  server.on('connection', (socket) => {
    connections++;
    socket.once('close', () => ended++);
  });
  const send = signedSend({ url: await listening(server), idleMs: 200 });
  const get = async (path: string) => (await send({ method: 'GET', path })).status;
  expect([await get('/'), await get('/'), await get('/slow')]).toEqual([200, 200, 200]);
  expect([connections, ended]).toEqual([1, 0]);
  await expect.poll(() => ended).toBe(1);
  expect(await get('/')).toBe(200);
  expect(connections).toBe(2);
});

test('a timeout given with a request replaces the default', async () => {
  const server = createServer(async (_request, response) => {
    await wait(600);
    response.end('{}');
  });
  const send = signedSend({ url: await listening(server), timeoutMs: 100 });
  await expect(send({ method: 'GET', path: '/' })).rejects.toThrow('does not answer (timeout)');
  expect((await send({ method: 'GET', path: '/', timeoutMs: scaledTimeout(20_000) })).status).toBe(200);
});

test('a governed call has a timeout longer than a platform may take; other requests have the default', async () => {
  const asked: BrokerRequest[] = [];
  const client = agentClient(async (request) => {
    asked.push(request);
    return { status: 200, headers: new Headers(), text: '{"data":{"version":"1"}}' };
  });
  await client.call({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' });
  await client.permissions();
  expect(asked.map(({ path, timeoutMs }) => [path, timeoutMs])).toEqual([
    ['/v1/actions', 660_000],
    ['/v1/agent/permissions', undefined],
  ]);
});
