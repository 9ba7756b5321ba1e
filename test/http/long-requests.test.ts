/** How long a request may take to arrive: a minute, except for git, whose entry point enforces progress of the body. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { inTime } from '../../broker/http/request-pieces.ts';
import { makeLog } from '../../broker/log/log.ts';
import { openListener } from '../../broker/process/listener.ts';
import { answerUnparsedRequests } from '../../broker/process/unparsed-requests.ts';
import { listenOnLoopback } from '../world/listen.ts';

/** Answers with the size of the body after it has arrived. */
async function startServer(handled: Promise<unknown>[] = []) {
  const server = createServer({ requestTimeout: 300, headersTimeout: 300, connectionsCheckingInterval: 50 });
  answerUnparsedRequests(server, ({ url = '' }) => url.startsWith('/git/'));
  server.on('request', (request, response) => {
    if (request.url === '/git/refused') return void response.writeHead(401).end('no');
    const counting = (async () => {
      let bytes = 0;
      for await (const piece of inTime(request, 400)) bytes += piece.length;
      response.end(String(bytes));
    })();
    handled.push(counting.catch((error) => error));
  });
  return await listenOnLoopback(server);
}

/** Sends a byte at intervals. Returns all that was received until the peer closes. */
async function sendSlowly(port: number, path: string, bytes: number, everyMs: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  let received = '';
  socket.on('data', (piece) => {
    received += piece;
  });
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n`);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent++ < bytes && socket.writable) socket.write('x');
  }, everyMs);
  await once(socket, 'close');
  clearInterval(timer);
  return received;
}

test('headers that do not arrive are cut off within a third more than their time limit', async () => {
  const listener = await openListener({ host: '127.0.0.1', port: 0 }, makeLog('silent'), { headersMs: 900 });
  onTestFinished(() => listener.close({ graceMs: 0 }));
  listener.serve((_, response) => void response.end('answered'));
  const socket = connect(listener.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => {});
  let received = '';
  socket.on('data', (piece) => {
    received += piece;
  });
  const begun = performance.now();
  socket.write('GET / HTTP/1.1\r\n');
  const drip = setInterval(() => socket.writable && socket.write('X-A: a\r\n'), 100);
  onTestFinished(() => clearInterval(drip));
  await once(socket, 'close');
  expect(received).toMatch(/^HTTP\/1.1 408 /);
  const took = performance.now() - begun;
  expect(took).toBeGreaterThan(890);
  // A busy machine is late; without the setting the check runs after 30 s.
  expect(took).toBeLessThan(6_000);
});

test('a body that takes too long is cut off, except one of git', async () => {
  const port = await startServer();
  expect(await sendSlowly(port, '/v1/actions', 10, 80)).toMatch(/^HTTP\/1.1 408 /);
  expect(await sendSlowly(port, '/git/a/b/git-receive-pack', 10, 80)).toMatch(/^HTTP\/1.1 200 [\s\S]*\r\n10/);
});

test('a body of git that makes no progress is cut off by its reader', async () => {
  const handled: Promise<unknown>[] = [];
  const port = await startServer(handled);
  const begun = performance.now();
  expect(await sendSlowly(port, '/git/a/b/git-receive-pack', 2, 80)).toBe('');
  expect(performance.now() - begun).toBeLessThan(3_000);
  expect(await handled[0]).toBeInstanceOf(Error);
});

test('a request that was answered before its body was complete is cut off like any other', async () => {
  const port = await startServer();
  expect(await sendSlowly(port, '/git/refused', 10, 1_000)).toMatch(/^HTTP\/1.1 401 /);
});
