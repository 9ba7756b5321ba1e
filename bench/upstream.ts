/**
 * The platform of the bench, in a process of its own: node:http, one fixed JSON answer of about 300 bytes to any GET. `/files/N`: N MiB of
 * bytes. `/items/numbers-N`: N MiB of JSON, a list of small numbers; `/items/digits-N`: the same after an integer that a double cannot
 * represent. `/events/N`: N seconds of server-sent events, each with the time of sending in nanoseconds (CLOCK_MONOTONIC).
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline, Readable } from 'node:stream';

const CONTENT = Buffer.from(
  JSON.stringify({
    number: 1_347,
    title: 'Checkout shows the wrong shipping cost for islands',
    state: 'open',
    labels: ['bug', 'checkout'],
    author: { id: 'usr_20417', name: 'Mara Lind' },
    comments: 4,
    created_at: '2026-02-11T08:14:31Z',
    updated_at: '2026-02-12T17:02:05Z',
    url: 'https://issues.example/shop/storefront/issues/1347',
  }),
);
const HEADERS = { 'content-type': 'application/json; charset=utf-8', 'content-length': CONTENT.length };

const MIB = Buffer.alloc(1024 * 1024, 'x');
const EVENTS_INTERVAL_MS = 250;

const server = createServer((request, response) => {
  const [, what, count] = /^\/(files\/|events\/|items\/numbers-|items\/digits-)(\d+)/.exec(request.url ?? '') ?? [];
  if (request.method === 'PUT') void take(request, response);
  else if (what === 'files/') {
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-length': Number(count) * MIB.length,
    });
    pipeline(Readable.from(Array(Number(count)).fill(MIB), { highWaterMark: 1 }), response, () => {});
  } else if (what === 'events/') tick(response, Number(count) * 1_000);
  else if (what !== undefined) {
    const first = what === 'items/digits-' ? '1234567890123456789' : '1';
    const list = Buffer.from(`[${first}${',1'.repeat((Number(count) * MIB.length) / 2)}]`);
    response.writeHead(200, { ...HEADERS, 'content-length': list.length }).end(list);
  } else response.writeHead(200, HEADERS).end(CONTENT);
});

async function take(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let bytes = 0;
  for await (const piece of request) bytes += piece.length;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ bytes }));
}

function tick(response: ServerResponse, ms: number): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const say = () => response.write(`data: ${process.hrtime.bigint()}\n\n`);
  say();
  const timer = setInterval(say, EVENTS_INTERVAL_MS);
  const over = setTimeout(() => response.end(), ms);
  response.once('close', () => {
    clearInterval(timer);
    clearTimeout(over);
  });
}

// Longer than any pause between two rounds, so that no proxy uses a connection that was just closed.
server.keepAliveTimeout = 300_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
