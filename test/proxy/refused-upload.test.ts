/** A client that sends a whole large body before it reads gets the refusal instead of a reset, however it sends. */
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';

const PIECE = Buffer.alloc(64 * 1024, 120);
const PIECES = 128;

const chunk = (bytes: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
const END = Buffer.from('0\r\n\r\n');
const LENGTHS = {
  'with a length': { header: `Content-Length: ${PIECES * PIECE.length}`, piece: PIECE, end: Buffer.alloc(0) },
  'in chunks': { header: 'Transfer-Encoding: chunked', piece: chunk(PIECE), end: END },
  'in chunks of AWS, with a length': {
    header: `Content-Encoding: aws-chunked\r\nContent-Length: ${PIECES * chunk(PIECE).length + END.length}`,
    piece: chunk(PIECE),
    end: END,
  },
  'in chunks of AWS, in chunks': {
    header: 'Content-Encoding: aws-chunked\r\nTransfer-Encoding: chunked',
    piece: chunk(chunk(PIECE)),
    end: Buffer.concat([chunk(END), END]),
  },
};

/** Writes everything, and only then reads. Resolves to the status line, or to the connection's error. */
function upload(agent: TestAgent, how: keyof typeof LENGTHS, connection: string): Promise<string> {
  const { hostname, port, host } = new URL(agent.baseUrl);
  const { header, piece, end } = LENGTHS[how];
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname).pause();
    let text = '';
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      if (text.includes('\r\n')) {
        resolve(text.slice(0, text.indexOf('\r\n')));
        socket.destroy();
      }
    });
    socket.on('error', ({ message }) => resolve(message));
    socket.on('close', () => resolve('closed without an answer'));
    socket.write(
      `POST /proxy/demo-main/items HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${agent.token()}\r\n` +
        `Content-Type: application/octet-stream\r\n${header}\r\nConnection: ${connection}\r\n\r\n`,
    );
    let sent = 0;
    const write = () => {
      while (sent < PIECES && !socket.destroyed) {
        sent++;
        if (!socket.write(piece)) return void socket.once('drain', write);
      }
      socket.write(end);
      socket.resume();
    };
    write();
  });
}

describe('a refused upload gets its answer', () => {
  const world = givenWorld('sqlite');
  const organisation = shared(() => world.demoOrganisation());
  const denied = shared(() => organisation.agent({ rules: [{ effect: 'deny' }] }));
  const allowed = shared(() => organisation.agent({ rules: [{ effect: 'allow' }] }));

  test.each(
    Object.keys(LENGTHS).flatMap((how) => ['keep-alive', 'close'].map((connection) => [how, connection] as const)),
  )('%s, Connection: %s', async (how, connection) => {
    expect(await upload(denied, how as keyof typeof LENGTHS, connection)).toBe('HTTP/1.1 403 Forbidden');
  });

  test.each(Object.keys(LENGTHS))('%s, when the platform refuses before the body is complete', async (how) => {
    world.upstream.answer = (_request, response) => void response.writeHead(403).end('{}');
    expect(await upload(allowed, how as keyof typeof LENGTHS, 'keep-alive')).toBe('HTTP/1.1 403 Forbidden');
  });
});
