import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { openListener } from '../../broker/process/listener.ts';
import { MAX_PIPELINED } from '../../broker/process/pipelined-requests.ts';

async function listen() {
  const listener = await openListener({ host: '127.0.0.1', port: 0 }, makeLog('silent'));
  onTestFinished(() => listener.close({ graceMs: 0 }));
  const requests: [IncomingMessage, ServerResponse][] = [];
  listener.serve((...one) => requests.push(one));
  const socket = connect(listener.port, '127.0.0.1');
  onTestFinished(() => {
    socket.destroy();
  });
  await once(socket, 'connect');
  let text = '';
  socket.on('data', (bytes) => (text += bytes)).on('error', () => {});
  const send = (from: number, count: number) =>
    socket.write(Array.from({ length: count }, (_, i) => `GET /${from + i} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  return { requests, socket, send, text: () => text };
}

test('a few pipelined requests are answered in their order, as often as a client sends them', async () => {
  const { requests, send, text } = await listen();
  for (let round = 0; round < 3; round++) {
    send(10 * round, 1 + MAX_PIPELINED);
    await expect.poll(() => requests.length).toBe(1 + MAX_PIPELINED);
    for (const [request, response] of requests.splice(0).reverse()) response.end(`answer to ${request.url}.`);
    await expect
      .poll(() =>
        text()
          .match(/answer to \/\d+/g)
          ?.slice(-1 - MAX_PIPELINED),
      )
      .toEqual(Array.from({ length: 1 + MAX_PIPELINED }, (_, i) => `answer to /${10 * round + i}`));
  }
});

test('DOS-04 a thousand pipelined requests close their connection, and are not handled', async () => {
  const { requests, socket, send } = await listen();
  const closed = once(socket, 'close');
  send(0, 1_000);
  await closed;
  expect(requests).toHaveLength(1 + MAX_PIPELINED);
});
