import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decodeAwsChunked, isAwsChunked, withoutAwsChunked } from '../../broker/proxy/aws-chunked.ts';

async function* inPieces(text: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
}
async function decoded(text: string | Buffer, { size = 7, length }: { size?: number; length?: number } = {}) {
  const pieces: Buffer[] = [];
  for await (const piece of decodeAwsChunked(inPieces(Buffer.from(text), size), length)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}
const sumOf = (text: string): string => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return bytes.toString('base64');
};
const HELLO = 'hello, world';
const CHUNKS = `5\r\nhello\r\n7;chunk-signature=${'a'.repeat(64)}\r\n, world\r\n0\r\n`;

describe('bodies in the coding aws-chunked', () => {
  test.each([1, 2, 5, 64, 1_000])('are the bytes of their chunks, in pieces of %i', async (size) => {
    const trailer = `x-amz-checksum-crc32:${sumOf(HELLO)}\r\n\r\n`;
    expect(await decoded(CHUNKS + trailer, { size, length: HELLO.length })).toBe(HELLO);
  });

  test.each([
    ['no trailer', '\r\n'],
    ['no end', ''],
    ['SHA-1', `x-amz-checksum-sha1:${createHash('sha1').update(HELLO).digest('base64')}\r\n\r\n`],
    ['SHA-256', `x-amz-checksum-sha256: ${createHash('sha256').update(HELLO).digest('base64')}\r\n\r\n`],
    ['a signed trailer', `x-amz-checksum-crc32:${sumOf(HELLO)}\r\nx-amz-trailer-signature:ab\r\n\r\n`],
  ])('with %s', async (_, trailer) => {
    expect(await decoded(CHUNKS + trailer)).toBe(HELLO);
  });

  test('of a thousand small chunks are read, and of many more refused', async () => {
    const small = (count: number) => `${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`;
    expect(await decoded(small(1_000), { size: 64_000 })).toBe('x'.repeat(1_000));
    await expect(decoded(small(100_000), { size: 64_000 })).rejects.toThrow('too small');
    // As small as they may be on average.
    const chunk = `100\r\n${'x'.repeat(256)}\r\n`;
    expect(await decoded(`${chunk.repeat(5_000)}0\r\n\r\n`, { size: 64_000 })).toHaveLength(5_000 * 256);
  });

  test('an empty one is empty', async () => {
    expect(await decoded('0\r\n\r\n', { length: 0 })).toBe('');
  });

  test.each<[string, string, string, number?]>([
    ['another checksum', `${CHUNKS}x-amz-checksum-crc32:AAAAAA==\r\n\r\n`, 'another checksum (crc32)'],
    ['an unknown checksum', `${CHUNKS}x-amz-checksum-crc64nvme:AAAAAA==\r\n\r\n`, 'crc64nvme of a body is not known'],
    ['another length', `${CHUNKS}\r\n`, 'x-amz-decoded-content-length', 11],
    ['a chunk without a length', 'hello\r\n', 'begins with no length'],
    ['a negative length', '-5\r\nhello\r\n0\r\n\r\n', 'begins with no length'],
    ['a length that is too large', `${'f'.repeat(9)}\r\n`, 'begins with no length'],
    ['a chunk that is longer than it says', '2\r\nhello\r\n0\r\n\r\n', 'longer than it says'],
    ['an end in a chunk', '5\r\nhel', 'ends in the middle'],
    ['an end before the last chunk', '5\r\nhello\r\n', 'ends in the middle'],
    ['a line without an end', 'a'.repeat(5_000), 'too long'],
    ['what is no trailer', '0\r\nwhat is this\r\n\r\n', 'no trailer'],
    ['too many trailers', `0\r\n${'x-a:b\r\n'.repeat(9)}\r\n`, 'no trailer'],
  ])('with %s are refused', async (_, text, why, length) => {
    await expect(decoded(text, length === undefined ? {} : { length })).rejects.toThrow(why);
  });

  test('the last bytes of one that is wrong never come', async () => {
    const pieces: string[] = [];
    const wrong = `${CHUNKS}x-amz-checksum-crc32:AAAAAA==\r\n\r\n`;
    const reading = (async () => {
      for await (const piece of decodeAwsChunked(inPieces(Buffer.from(wrong), 1_000))) pieces.push(String(piece));
    })();
    await expect(reading).rejects.toThrow('another checksum');
    expect(pieces).toEqual(['hello']);
  });

  test('the coding is found beside another, and taken off', () => {
    expect([
      isAwsChunked('aws-chunked'),
      isAwsChunked('gzip, AWS-chunked'),
      isAwsChunked('gzip'),
      isAwsChunked(),
    ]).toEqual([true, true, false, false]);
    expect([withoutAwsChunked('aws-chunked'), withoutAwsChunked('gzip, aws-chunked')]).toEqual([undefined, 'gzip']);
  });
});
