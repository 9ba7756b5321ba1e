/** Streamed answers that are cut off. */
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { answerPieces } from '../../broker/http/pieces.ts';
import { send } from '../../broker/http/reply.ts';
import { makeLog } from '../../broker/log/log.ts';
import type { Services } from '../../broker/services.ts';
import { listenOnLoopback } from '../world/listen.ts';

/** Returns what was received, and how the connection ended. */
function read(port: number, version: string): Promise<{ came: string; ended: string }> {
  return new Promise((done) => {
    let came = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET / HTTP/${version}\r\nHost: localhost\r\n\r\n`));
    socket.on('data', (chunk) => (came += chunk));
    socket.on('end', () => done({ came, ended: 'closed' }));
    socket.on('error', (error: NodeJS.ErrnoException) => done({ came, ended: String(error.code) }));
  });
}

test('when a piece fails, or the session ends, the answer is recognisably incomplete', async () => {
  const services = { broker: { log: makeLog('silent') } } as Services;
  async function* pieces() {
    yield 'first\n';
    await new Promise((later) => setTimeout(later, 50));
    throw new Error('the store is away');
  }
  const server = createServer((_request, response) =>
    send(response, answerPieces({ services, stillMay: async () => true }, 'text/plain', pieces()), 'id'),
  );
  const port = await listenOnLoopback(server);
  // In HTTP/1.0 the end of the connection ends the answer, so it is reset.
  expect(await read(port, '1.0')).toEqual({ came: expect.stringMatching(/first\n$/), ended: 'ECONNRESET' });
  // In HTTP/1.1 the last chunk is missing.
  expect(await read(port, '1.1')).toEqual({ came: expect.stringMatching(/first\n\r\n$/), ended: 'closed' });
});
