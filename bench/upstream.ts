/** The platform of the bench, a process of its own: node:http, one fixed JSON answer of about 300 bytes to any GET. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

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

const server = createServer((_request, response) => {
  response.writeHead(200, HEADERS).end(CONTENT);
});
// Longer than any pause between two rounds, so that no proxy meets a connection that was just closed.
server.keepAliveTimeout = 300_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
