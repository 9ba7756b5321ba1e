/** The end of the listener: connections that the kernel has accepted already are served. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { openListener } from '../../broker/process/listener.ts';

const CLIENTS = 50;

/** Sends requests on new connections, sets `connected` when the kernel has accepted all of them, and posts the responses. */
const CLIENT = `
const { connect } = require('node:net');
const { text } = require('node:stream/consumers');
const { parentPort, workerData: { port, clients, connected } } = require('node:worker_threads');
const sockets = Array.from({ length: clients }, () => connect(port, '127.0.0.1'));
for (const socket of sockets) socket.write('GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n');
Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve)))).then(() => {
  Atomics.store(connected, 0, 1);
  Atomics.notify(connected, 0);
});
Promise.all(sockets.map((socket) => text(socket).catch((error) => error.code))).then((all) => parentPort.postMessage(all));
`;

test('connections in the accept queue are answered, and later ones are refused', async () => {
  const listener = await openListener({ host: '127.0.0.1', port: 0 }, makeLog('silent'));
  onTestFinished(() => listener.close({ graceMs: 0 }));
  listener.serve((_, response) => response.end('served'));
  const connected = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(CLIENT, { eval: true, workerData: { port: listener.port, clients: CLIENTS, connected } });
  const responses = once(worker, 'message');
  // Blocks this thread, like a busy broker, so that the connections stay in the queue.
  Atomics.wait(connected, 0, 0, 10_000);
  const closed = listener.close({ graceMs: 5_000 });
  const [all] = await responses;
  expect(all.filter((response: string) => response.startsWith('HTTP/1.1 200 OK\r\nConnection: close'))).toHaveLength(
    CLIENTS,
  );
  await closed;
  const [error] = await once(connect(listener.port, '127.0.0.1'), 'error');
  expect(error.code).toBe('ECONNREFUSED');
});
