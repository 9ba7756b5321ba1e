import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { StreamedCredential } from '../../broker/egress/credential-search/stream.ts';
import type { Outbound } from '../../broker/egress/dispatcher.ts';
import type { StreamRequest } from '../../broker/egress/outbound-request.ts';
import { StreamBroken } from '../../broker/egress/streamed-body.ts';
import { expectStatus } from '../world/agent.ts';
import { sized } from '../world/runner/thorough.ts';
import { fixedUpstream, httpUpstream, outboundTo, rawUpstream } from './upstream.ts';

const MIB = 1024 * 1024;
/** Of 64 KiB each: several times what the sockets may hold. */
const PIECES = sized(800, 1_600);
const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz';
const search = { credential: new StreamedCredential(new Secret(SECRET)) };
const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');

async function open(outbound: Outbound, url: URL, more: Partial<StreamRequest> = {}) {
  const answer = await outbound.stream({ url, method: 'GET', headers: {}, ...more });
  if (answer.kind !== 'stream') throw new Error(answer.code);
  return answer;
}

/** Reads a body to its end: returns all of it, and how it ended. */
async function take(body: AsyncIterable<Buffer>) {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of body) chunks.push(chunk);
    return { bytes: Buffer.concat(chunks), ended: 'complete' };
  } catch (error) {
    if (!(error instanceof StreamBroken)) throw error;
    return { bytes: Buffer.concat(chunks), ended: error.ended };
  }
}

/** Writes with back-pressure from the reader. */
function writeAll(response: ServerResponse, chunk: Buffer, times: number, onWritten = (_: number) => {}) {
  function* chunks() {
    for (let i = 0; i < times; i++) {
      onWritten(chunk.length);
      yield chunk;
    }
  }
  pipeline(Readable.from(chunks(), { highWaterMark: 1 }), response, () => {});
}

describe('a streamed answer', () => {
  test('delivers its head, then its body piece by piece, and is counted', async () => {
    await using upstream = await httpUpstream(async (_, response) => {
      response.writeHead(206, { 'content-type': 'text/event-stream', 'x-a': '1' });
      for (const event of ['data: one\n\n', 'data: two\n\n']) {
        response.write(event);
        await wait(30);
      }
      response.end();
    });
    await using outbound = outboundTo(upstream);
    const { status, headers, body, uploaded } = await open(outbound, upstream.url(), { search });
    expect([status, headers['x-a']]).toEqual([206, '1']);
    expect((await body.next()).value?.toString()).toBe('data: one\n\n');
    expect(body.ended).toBeUndefined();
    expect((await take(body)).bytes.toString()).toBe('data: two\n\n');
    expect(body.ended).toBe('complete');
    expect(await body.taken()).toEqual({ bytes: 22, sha256: sha256('data: one\n\ndata: two\n\n') });
    expect(await uploaded()).toEqual({ bytes: 0, sha256: sha256('') });
  });

  test('requests no content coding, and has back-pressure: memory is bounded for any size', async () => {
    let written = 0;
    let accepted: unknown;
    const chunk = Buffer.alloc(64 * 1024, 'x');
    await using upstream = await httpUpstream((request, response) => {
      accepted = request.headers['accept-encoding'];
      writeAll(response, chunk, PIECES, (bytes) => {
        written += bytes;
      });
    });
    await using outbound = outboundTo(upstream);
    const { body } = await open(outbound, upstream.url(), { search });
    await body.next();
    await wait(300);
    const before = written;
    await wait(200);
    // What the sockets of both sides buffer depends on the system.
    expect(written).toBe(before);
    expect(before).toBeLessThan(16 * MIB);
    expect((await take(body)).ended).toBe('complete');
    expect([accepted, (await body.taken()).bytes]).toEqual(['identity', PIECES * 64 * 1024]);
  });

  test('is cut when nobody reads it, and frees its connection', async () => {
    await using upstream = await httpUpstream((_, response) => {
      writeAll(response, Buffer.alloc(64 * 1024, 'x'), PIECES);
    });
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1, idleTimeoutMs: 200 });
    const { body } = await open(outbound, upstream.url(), { takeTimeoutMs: 100 });
    await open(outbound, upstream.url());
    expect(body.ended).toBe('client_closed');
    await expect(body.next()).rejects.toMatchObject({ ended: 'client_closed' });
  });

  test('does not delay other calls, with as many streams as concurrent calls allowed', async () => {
    await using upstream = await httpUpstream((request, response) => {
      response.write('x');
      if (request.url === '/short') response.end();
    });
    await using outbound = outboundTo(upstream);
    const open255 = await Promise.all(Array.from({ length: 255 }, () => open(outbound, upstream.url())));
    expect((await take((await open(outbound, upstream.url('/short'))).body)).ended).toBe('complete');
    for (const { body } of open255) await body.return();
  });

  test('closes its connection when the reader stops', async () => {
    let closed = 0;
    await using upstream = await httpUpstream((_, response) => {
      response.on('close', () => closed++);
      writeAll(response, Buffer.alloc(64 * 1024, 'x'), PIECES);
    });
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1 });
    for (let i = 0; i < 3; i++) {
      const { body } = await open(outbound, upstream.url());
      for await (const chunk of body) if (chunk.length > 0) break;
      expect(body.ended).toBe('client_closed');
    }
    await expect.poll(() => closed).toBe(3);
  });

  test('is not complete when it is small and not read to its end', async () => {
    await using upstream = await fixedUpstream('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
    await using outbound = outboundTo(upstream);
    const { body } = await open(outbound, upstream.url());
    await body.return();
    expect(body.ended).toBe('client_closed');
    await body.return();
    expect((await take((await open(outbound, upstream.url())).body)).ended).toBe('complete');
  });

  test('is ended by the idle timeout, which any byte resets', async () => {
    await using upstream = await httpUpstream(async (_, response) => {
      for (let i = 0; i < 6; i++) {
        response.write(':\n\n');
        await wait(60);
      }
    });
    await using outbound = outboundTo(upstream, { idleTimeoutMs: 100 });
    const { body } = await open(outbound, upstream.url(), { idleTimeoutMs: 200 });
    const { bytes, ended } = await take(body);
    expect([bytes.toString(), ended]).toEqual([':\n\n'.repeat(6), 'idle']);
  });

  test.each([
    ['cut', 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc', true, 'upstream_closed'],
    ['no chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n', false, 'upstream_closed'],
    [
      'over the limit',
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n8\r\n12345678\r\n`,
      false,
      'over_limit',
    ],
  ])('%s: the bytes received before are delivered', async (_what, answer, end, ended) => {
    await using upstream = await fixedUpstream(answer, end);
    await using outbound = outboundTo(upstream);
    const { body } = await open(outbound, upstream.url(), { maxResponseBytes: 10 });
    const taken = await take(body);
    expect([taken.ended, body.ended]).toEqual([ended, ended]);
    expect('abc').toContain(taken.bytes.toString());
  });

  test('without a head fails', async () => {
    await using upstream = await rawUpstream((socket) => socket.destroy());
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1 });
    const request = { url: upstream.url(), method: 'GET', headers: {} };
    for (let i = 0; i < 3; i++)
      expect(await outbound.stream(request)).toMatchObject({
        kind: 'unreachable',
        code: 'connection_lost',
        sent: true,
      });
    expect(await outbound.stream({ ...request, method: 'get' })).toMatchObject({ code: 'bad_request' });
    await outbound.close();
    expect(await outbound.stream(request)).toMatchObject({ code: 'closed' });
  });
});

describe('a streamed request', () => {
  const echo = () =>
    httpUpstream((request, response) => {
      response.writeHead(200, { 'x-length': request.headers['content-length'] ?? 'chunked' });
      request.pipe(response);
    });

  test.each([undefined, 3 * MIB])(
    'with or without a known length (%s) is sent while its answer is received',
    async (bodyBytes) => {
      await using upstream = await echo();
      await using outbound = outboundTo(upstream);
      const piece = Buffer.alloc(MIB, 'y');
      async function* pieces() {
        for (let i = 0; i < 3; i++) yield piece;
      }
      const more = bodyBytes === undefined ? {} : { bodyBytes };
      const { headers, body, uploaded } = await open(outbound, upstream.url(), {
        method: 'POST',
        body: pieces(),
        ...more,
      });
      expect(headers['x-length']).toBe(bodyBytes === undefined ? 'chunked' : `${bodyBytes}`);
      expect((await take(body)).ended).toBe('complete');
      const whole = { bytes: 3 * MIB, sha256: sha256(Buffer.concat([piece, piece, piece])) };
      expect([await uploaded(), await body.taken()]).toEqual([whole, whole]);
    },
  );

  test('whose source breaks off is ended, with its connection', async () => {
    let aborted = 0;
    await using upstream = await httpUpstream((request, response) => {
      request.on('error', () => aborted++);
      response.writeHead(200);
      request.pipe(response);
    });
    await using outbound = outboundTo(upstream, { connectionsPerOrigin: 1 });
    async function* pieces() {
      yield Buffer.from('some');
      await wait(50);
      throw new Error('the client is gone');
    }
    const { body } = await open(outbound, upstream.url(), { method: 'POST', body: pieces() });
    expect((await take(body)).ended).toBe('client_closed');
    await expect.poll(() => aborted).toBe(1);
  });

  test('can be answered before its end', async () => {
    await using upstream = await httpUpstream((_, response) => {
      response.writeHead(413, { connection: 'close' });
      response.end('too much');
    });
    await using outbound = outboundTo(upstream);
    async function* pieces() {
      for (let i = 0; i < 50; i++) {
        yield Buffer.alloc(64 * 1024);
        await wait(5);
      }
    }
    const { body } = await expectStatus(413, open(outbound, upstream.url(), { method: 'POST', body: pieces() }));
    expect((await take(body)).bytes.toString()).toBe('too much');
  });
});

describe('the credential in a streamed answer', () => {
  const inPieces = (type: string, ...pieces: string[]) =>
    httpUpstream(async (_, response) => {
      response.writeHead(200, { 'content-type': type, 'content-length': pieces.join('').length });
      for (const piece of pieces) {
        response.write(piece);
        await wait(10);
      }
      response.end();
    });

  test('is replaced by the same number of bytes in a text, across pieces', async () => {
    await using upstream = await inPieces('application/json', '{"a":"ghp_0123', SECRET.slice(8), '"}');
    await using outbound = outboundTo(upstream);
    const { headers, body } = await open(outbound, upstream.url(), { search });
    const { bytes } = await take(body);
    expect(bytes.toString()).toBe(`{"a":"${'*'.repeat(SECRET.length)}"}`);
    expect([bytes.length, (await body.taken()).sha256]).toEqual([Number(headers['content-length']), sha256(bytes)]);
  });

  test('breaks off any other type of answer', async () => {
    await using upstream = await inPieces('image/png', 'abc ghp_0123', SECRET.slice(8), 'def');
    await using outbound = outboundTo(upstream);
    const { body } = await open(outbound, upstream.url(), { search });
    const { bytes, ended } = await take(body);
    // Bytes before it in the completing piece are not passed on, and TCP may deliver two pieces as one.
    expect(['abc ', '']).toContain(bytes.toString());
    expect(ended).toBe('credential_found');
  });

  test('is found at the very end', async () => {
    await using upstream = await inPieces('image/png', SECRET);
    await using outbound = outboundTo(upstream);
    expect(await take((await open(outbound, upstream.url(), { search })).body)).toEqual({
      bytes: Buffer.alloc(0),
      ended: 'credential_found',
    });
  });
});

describe('an answer that is compressed although not requested', () => {
  const coded = (coding: string, body: Buffer) =>
    fixedUpstream(
      Buffer.concat([
        Buffer.from(
          `HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`,
        ),
        body,
      ]),
    );
  const text = `${'hello world '.repeat(100_000)}${SECRET}`;

  test.each([
    ['gzip', zlib.gzipSync(text)],
    ['br', zlib.brotliCompressSync(text)],
    ['deflate', zlib.deflateSync(text)],
    ['deflate', zlib.deflateRawSync(text)],
    ['br, gzip', zlib.gzipSync(zlib.brotliCompressSync(text))],
    ['deflate, gzip', zlib.gzipSync(zlib.deflateRawSync(text))],
  ])('%s is decompressed, and the credential found in it', async (coding, body) => {
    await using upstream = await coded(coding, body);
    await using outbound = outboundTo(upstream);
    const answer = await open(outbound, upstream.url(), { search });
    expect(answer.headers).not.toHaveProperty('content-encoding');
    expect(answer.headers).not.toHaveProperty('content-length');
    const { bytes, ended } = await take(answer.body);
    expect([bytes.toString() === text.replace(SECRET, '*'.repeat(SECRET.length)), ended]).toEqual([true, 'complete']);
  });

  test.each(['gzip', 'gzip, gzip'])('a bomb (%s) is cut off', async (coding) => {
    const bomb = zlib.gzipSync(Buffer.alloc(100_000_000));
    await using upstream = await coded(coding, coding === 'gzip' ? bomb : zlib.gzipSync(bomb));
    await using outbound = outboundTo(upstream);
    const { bytes, ended } = await take((await open(outbound, upstream.url())).body);
    expect(ended).toBe('over_limit');
    expect(bytes.length).toBeLessThanOrEqual(10 * MIB);
  });

  test('corrupt or truncated data is not a complete answer', async () => {
    for (const body of [zlib.gzipSync(text).subarray(0, -20), Buffer.from('no gzip')]) {
      await using upstream = await coded('gzip', body);
      await using outbound = outboundTo(upstream);
      expect((await take((await open(outbound, upstream.url())).body)).ended).toBe('upstream_closed');
    }
    await using upstream = await coded('zstd', Buffer.from('x'));
    await using outbound = outboundTo(upstream);
    expect(await outbound.stream({ url: upstream.url(), method: 'GET', headers: {} })).toMatchObject({
      code: 'broken_answer',
    });
  });
});
