/** Connections of clients to the broker, behind a proxy that does not say how long it keeps them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { signedSend } from '../../mcp/client/signed-send.ts';
import { afterFile } from '../world/after-file.ts';

test('one that is not used is ended, one with an open request is not', async () => {
  let connections = 0;
  let ended = 0;
  // Without its time to keep them, so it says nothing of it.
  const server = createServer({ keepAliveTimeout: 0 }, async (request, response) => {
    if (request.url === '/slow') await wait(500);
    response.end('{}');
  });
  server.on('connection', (socket) => {
    connections++;
    socket.once('close', () => ended++);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  const send = signedSend({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, idleMs: 200 });
  const get = async (path: string) => (await send({ method: 'GET', path })).status;
  expect([await get('/'), await get('/'), await get('/slow')]).toEqual([200, 200, 200]);
  expect([connections, ended]).toEqual([1, 0]);
  await expect.poll(() => ended).toBe(1);
  expect(await get('/')).toBe(200);
  expect(connections).toBe(2);
});
