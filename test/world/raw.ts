/** Sends HTTP as bytes, for requests that no client library would send. */
import net from 'node:net';
import { scaledTimeout } from './runner/test-timeouts.ts';

export type RawAnswer = { status: number; head: string; body: string };

const TIMEOUT_MS = scaledTimeout(5_000);

/**
 * Writes bytes to a port on loopback and reads until the peer closes: end a well-formed request with `Connection: close`. Returns the first answer,
 * with status 0 when there was none, or it was lost to a reset.
 */
export function exchange(port: number, bytes: string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1');
    let received = '';
    const late = setTimeout(
      () => socket.destroy(new Error(`no end of the answer: ${received.slice(0, 200)}`)),
      TIMEOUT_MS,
    );
    socket.setEncoding('latin1');
    socket.on('data', (text) => {
      received += text;
    });
    // A reset counts as an end: the peer need not read what it refuses.
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => {
      clearTimeout(late);
      const final = received.replace(/^HTTP\/1\.1 100 [^\r]*\r\n\r\n/, '');
      const [head = '', ...rest] = final.split('\r\n\r\n');
      resolve({ status: Number(head.split(' ')[1] ?? 0), head, body: rest.join('\r\n\r\n') });
    });
    socket.write(bytes, 'latin1');
  });
}
