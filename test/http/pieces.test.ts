/** Answers in pieces that do not come to their end. */
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { answerPieces } from '../../broker/http/pieces.ts';
import { send } from '../../broker/http/reply.ts';
import { makeLog } from '../../broker/log/log.ts';
import type { Services } from '../../broker/services.ts';
import { afterFile } from '../world/after-file.ts';

/** What came, and how the connection ended. */
function read(port: number, version: string): Promise<{ came: string; ended: string }> {
  return new Promise((done) => {
    let came = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET / HTTP/${version}\r\nHost: localhost\r\n\r\n`));
    socket.on('data', (chunk) => (came += chunk));
    socket.on('end', () => done({ came, ended: 'closed' }));
    socket.on('error', (error: NodeJS.ErrnoException) => done({ came, ended: String(error.code) }));
  });
}

test('a piece that fails, or a session that ends, leaves nothing that could be taken for whole', async () => {
  const services = { broker: { log: makeLog('silent') } } as Services;
  async function* pieces() {
    yield 'first\n';
    await new Promise((later) => setTimeout(later, 50));
    throw new Error('the store is away');
  }
  const server = createServer((_request, response) =>
    send(response, answerPieces({ services, stillMay: async () => true }, 'text/plain', pieces()), 'id'),
  );
  await new Promise<void>((listens) => server.listen(0, '127.0.0.1', listens));
  afterFile(() => new Promise<void>((closed) => server.close(() => closed())));
  const { port } = server.address() as AddressInfo;
  // Whose end is the end of the answer.
  expect(await read(port, '1.0')).toEqual({ came: expect.stringMatching(/first\n$/), ended: 'ECONNRESET' });
  // Whose last chunk is not there.
  expect(await read(port, '1.1')).toEqual({ came: expect.stringMatching(/first\n\r\n$/), ended: 'closed' });
});
