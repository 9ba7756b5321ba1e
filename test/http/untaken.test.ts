import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { openListener } from '../../broker/process/listener.ts';

const MIB = 1024 * 1024;
const UNTAKEN_MS = 500;

async function ask(app: RequestListener): Promise<Socket> {
  const listener = await openListener({ host: '127.0.0.1', port: 0 }, makeLog('silent'), { untakenMs: UNTAKEN_MS });
  onTestFinished(() => listener.close({ graceMs: 0 }));
  listener.serve(app);
  const socket = connect(listener.port, '127.0.0.1');
  socket.on('error', () => {});
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'connect');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  return socket;
}

test('a response that the client does not read is closed after a time limit', async () => {
  const closed = Promise.withResolvers<void>();
  await ask((_, response) => {
    response.on('close', closed.resolve);
    response.end(Buffer.alloc(64 * MIB));
  });
  await closed.promise;
});

test('a slow reader gets the complete answer', async () => {
  const size = 16 * MIB;
  const socket = await ask((_, response) => response.end(Buffer.alloc(size)));
  let bytes = 0;
  socket.on('data', (chunk) => {
    bytes += chunk.length;
    socket.pause();
    setTimeout(() => socket.resume(), 4);
  });
  // A second at least, and on a busy machine many: longer in any case than a reader may take nothing.
  await expect.poll(() => bytes, { timeout: 50_000 }).toBeGreaterThan(size);
}, 60_000);

test('an answer that takes long to start is not cut off', async () => {
  const socket = await ask(async (_, response) => {
    await wait(UNTAKEN_MS * 3);
    response.end('there');
  });
  const [chunk] = await once(socket, 'data');
  expect(String(chunk)).toContain('there');
});
