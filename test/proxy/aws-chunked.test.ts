import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { decodeAwsChunked, isAwsChunked, withoutAwsChunked } from '../../broker/proxy/aws-chunked.ts';
import { checksum } from '../../broker/proxy/checksums.ts';

async function* inPieces(text: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield text.subarray(at, at + size);
}
async function decoded(
  text: string | Buffer,
  { size = 7, ...said }: { size?: number; length?: number; trailer?: string } = {},
) {
  const pieces: Buffer[] = [];
  for await (const piece of decodeAwsChunked(inPieces(Buffer.from(text), size), said)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}
const sumOf = (text: string): string => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(text));
  return bytes.toString('base64');
};
const HELLO = 'hello, world';
const hashOf = (name: string): string => createHash(name).update(HELLO).digest('base64');
const CRC32 = { trailer: 'x-amz-checksum-crc32' };
const CHUNKS = `5\r\nhello\r\n7;chunk-signature=${'a'.repeat(64)}\r\n, world\r\n0\r\n`;

describe('bodies with the encoding aws-chunked', () => {
  test.each([1, 2, 5, 64, 1_000])('are decoded to the bytes of their chunks, in pieces of %i', async (size) => {
    const trailer = `x-amz-checksum-crc32:${sumOf(HELLO)}\r\n\r\n`;
    const said = { length: HELLO.length, trailer: 'x-amz-checksum-crc32' };
    expect(await decoded(CHUNKS + trailer, { size, ...said })).toBe(HELLO);
  });

  test.each([
    ['no trailer', '\r\n'],
    ['no end', ''],
    ['SHA-1', `x-amz-checksum-sha1:${hashOf('sha1')}\r\n\r\n`, 'x-amz-checksum-sha1'],
    ['SHA-256', `x-amz-checksum-sha256: ${hashOf('sha256')}\r\n\r\n`, 'X-Amz-Checksum-Sha256'],
    ['SHA-512', `x-amz-checksum-sha512:${hashOf('sha512')}\r\n\r\n`, 'x-other, x-amz-checksum-sha512'],
    ['MD5', `x-amz-checksum-md5:${hashOf('md5')}\r\n\r\n`, 'x-amz-checksum-md5'],
    ['CRC-32C', 'x-amz-checksum-crc32c:aZmkHw==\r\n\r\n', 'x-amz-checksum-crc32c'],
    ['CRC-64/NVME', 'x-amz-checksum-crc64nvme:imGzfIgXKM8=\r\n\r\n', 'x-amz-checksum-crc64nvme'],
    [
      'a signed trailer',
      `x-amz-checksum-crc32:${sumOf(HELLO)}\r\nx-amz-trailer-signature:ab\r\n\r\n`,
      'x-amz-checksum-crc32',
    ],
  ])('with %s are decoded', async (_, trailer, announced = '') => {
    expect(await decoded(CHUNKS + trailer, { trailer: announced })).toBe(HELLO);
  });

  test('CRCs match the reference values, in pieces of any length', () => {
    const check = (name: string, pieces: readonly string[]) => {
      const sum = checksum(name)!;
      for (const piece of pieces) sum.add(Buffer.from(piece));
      return sum.digest().toString('hex');
    };
    for (const pieces of [['123456789'], ['1', '23456789'], ['12345678', '9'], [...'123456789']])
      expect(['crc32', 'crc32c', 'crc64nvme'].map((name) => check(name, pieces))).toEqual([
        'cbf43926',
        'e3069283',
        'ae8b14860a799888',
      ]);
  });

  test('of a thousand small chunks are decoded, and of many more refused', async () => {
    const small = (count: number) => `${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`;
    expect(await decoded(small(1_000), { size: 64_000 })).toBe('x'.repeat(1_000));
    await expect(decoded(small(100_000), { size: 64_000 })).rejects.toThrow('too small');
    // The smallest allowed average.
    const chunk = `100\r\n${'x'.repeat(256)}\r\n`;
    expect(await decoded(`${chunk.repeat(5_000)}0\r\n\r\n`, { size: 64_000 })).toHaveLength(5_000 * 256);
  });

  test('without content are empty', async () => {
    expect(await decoded('0\r\n\r\n', { length: 0 })).toBe('');
  });

  test.each<[string, string, string, { length?: number; trailer?: string }?]>([
    [
      'another checksum',
      `${CHUNKS}x-amz-checksum-crc32:AAAAAA==\r\n\r\n`,
      'checksum (crc32) at the end of the body does not match',
      CRC32,
    ],
    [
      'an unknown checksum',
      CHUNKS,
      'not supported: use one of crc32, crc32c, crc64nvme',
      { trailer: 'x-amz-checksum-xxhash64' },
    ],
    ['a checksum of that name', CHUNKS, 'not supported', { trailer: 'x-amz-checksum-constructor' }],
    ['a checksum that was not announced', `${CHUNKS}x-amz-checksum-crc32:AAAAAA==\r\n\r\n`, 'does not name'],
    ['an announced checksum missing', `${CHUNKS}\r\n`, 'without the checksum', CRC32],
    [
      'one checksum twice',
      `${CHUNKS}${`x-amz-checksum-crc32:${sumOf(HELLO)}\r\n`.repeat(2)}\r\n`,
      'does not name',
      CRC32,
    ],
    ['two that are announced', CHUNKS, 'more than one', { trailer: 'x-amz-checksum-crc32,x-amz-checksum-sha1' }],
    ['another length', `${CHUNKS}\r\n`, 'x-amz-decoded-content-length', { length: 11 }],
    ['a chunk without a length', 'hello\r\n', 'has no length at its beginning'],
    ['a negative length', '-5\r\nhello\r\n0\r\n\r\n', 'has no length at its beginning'],
    ['a length that is too large', `${'f'.repeat(9)}\r\n`, 'has no length at its beginning'],
    ['a chunk that is longer than it says', '2\r\nhello\r\n0\r\n\r\n', 'longer than it says'],
    ['an end in a chunk', '5\r\nhel', 'ends in the middle'],
    ['an end before the last chunk', '5\r\nhello\r\n', 'ends in the middle'],
    ['a line without an end', 'a'.repeat(5_000), 'too long'],
    ['a malformed trailer', '0\r\nwhat is this\r\n\r\n', 'not a valid trailer'],
    ['too many trailers', `0\r\n${'x-a:b\r\n'.repeat(9)}\r\n`, 'not a valid trailer'],
  ])('with %s are refused', async (_, text, why, said) => {
    await expect(decoded(text, said)).rejects.toThrow(why);
  });

  test('that are invalid never deliver their last bytes', async () => {
    const pieces: string[] = [];
    const wrong = `${CHUNKS}x-amz-checksum-crc32:AAAAAA==\r\n\r\n`;
    const reading = (async () => {
      for await (const piece of decodeAwsChunked(inPieces(Buffer.from(wrong), 1_000), CRC32))
        pieces.push(String(piece));
    })();
    await expect(reading).rejects.toThrow('does not match the body');
    expect(pieces).toEqual(['hello']);
  });

  test('the encoding is found next to another, and removed', () => {
    for (const [headers, is] of [
      [{ 'content-encoding': 'aws-chunked' }, true],
      [{ 'content-encoding': 'gzip, AWS-chunked' }, true],
      [{ 'content-encoding': 'gzip' }, false],
      [{ 'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' }, true],
      [{ 'x-amz-content-sha256': 'STREAMING-UNSIGNED-PAYLOAD-TRAILER', 'content-encoding': 'gzip' }, true],
      [{ 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' }, false],
      [{}, false],
    ] as const)
      expect(isAwsChunked(headers), JSON.stringify(headers)).toBe(is);
    expect([withoutAwsChunked('aws-chunked'), withoutAwsChunked('gzip, aws-chunked')]).toEqual([undefined, 'gzip']);
  });
});
