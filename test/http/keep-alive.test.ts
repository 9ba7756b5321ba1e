/** Idle connections. */
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startWorld } from '../world/world.ts';

/**
 * Sends a request on a new connection, waits, and sends another one. Returns the statuses; the second is undefined when the connection was closed
 * before.
 */
async function askTwice(baseUrl: string, pauseMs: number): Promise<(number | undefined)[]> {
  const { port, host } = new URL(baseUrl);
  const socket = connect(Number(port), '127.0.0.1');
  const request = `GET /health HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  let read = '';
  let isOver = false;
  socket.on('data', (chunk) => (read += chunk));
  socket.on('close', () => (isOver = true));
  socket.on('error', () => {});
  const statuses = () => [...read.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  socket.write(request);
  await expect.poll(() => statuses().length).toBe(1);
  await wait(pauseMs);
  if (!isOver) {
    socket.write(request);
    await expect.poll(() => statuses().length === 2 || isOver).toBe(true);
  }
  socket.destroy();
  return [statuses()[0], statuses()[1]];
}

test('idle connections of a trusted proxy are kept open; those of other clients are closed after the announced five seconds', async () => {
  const [direct, behind] = await Promise.all([startWorld(), startWorld('sqlite', { TRUSTED_PROXIES: '127.0.0.1' })]);
  expect((await fetch(`${direct.running.baseUrl}/health`)).headers.get('keep-alive')).toBe('timeout=5');
  const [late, closed, kept] = await Promise.all([
    askTwice(direct.running.baseUrl, 7_500),
    askTwice(direct.running.baseUrl, 12_000),
    askTwice(behind.running.baseUrl, 12_000),
  ]);
  expect(late).toEqual([200, 200]);
  expect(closed).toEqual([200, undefined]);
  expect(kept).toEqual([200, 200]);
});
