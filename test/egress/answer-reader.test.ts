import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { readAnswer } from '../../broker/egress/answers/answer.ts';
import { makeAnswerReader } from '../../broker/egress/answers/answer-reader.ts';
import { makeCredentialPatterns } from '../../broker/egress/credential-search/patterns.ts';

const SECRET = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz';
const patterns = makeCredentialPatterns(new Secret(SECRET));

const of = (family: string, organisation = 'acme') => ({ family, organisation });

function readerFrom(large: number) {
  const reader = makeAnswerReader(large);
  return { ...reader, [Symbol.asyncDispose]: () => reader.close() };
}

const answer = (body: string | Buffer, type = 'application/json') => ({
  status: 200,
  headers: { 'content-type': type, etag: '"1"' },
  body: Buffer.from(body),
});

describe('a large answer', () => {
  test.each([
    ['JSON', answer('{"a":["é",1e999]}')],
    ['text', answer('a "text"', 'text/plain')],
    ['bytes', answer(Buffer.from([0xff, 0, 1]), 'image/png')],
    ['the credential in a text', answer(`{"a":"${SECRET}"}`)],
    ['the credential in bytes', answer(`\0${SECRET}`, 'image/png')],
  ])('is read on the worker thread with the same result as on the main thread: %s', async (_what, one) => {
    await using reader = readerFrom(1);
    const here = readAnswer(one, patterns);
    const there = await reader.read({ ...one, body: Buffer.from(one.body) }, patterns, of('a'));
    if (there.kind === 'data') expect(Buffer.isBuffer(there.data)).toBe(true);
    expect(there.kind === 'data' ? { ...there, data: String(there.data) } : there).toEqual(here);
  });

  test('does not block small ones, which are read immediately', async () => {
    await using reader = readerFrom(256 * 1024);
    let isThere = false;
    const large = reader.read(answer(JSON.stringify('\\u0041'.repeat(1_000_000))), patterns, of('a')).then(() => {
      isThere = true;
    });
    expect(await reader.read(answer('{}'), patterns, of('b'))).toMatchObject({ data: '{}' });
    expect(isThere).toBe(false);
    await large;
  });

  test('many of one family delay another family by one answer only', async () => {
    await using reader = readerFrom(1);
    const order: string[] = [];
    const read = (family: string) => reader.read(answer('{}'), patterns, of(family)).then(() => order.push(family));
    await Promise.all([...Array.from({ length: 9 }, () => read('many')), read('one')]);
    expect(order.indexOf('one')).toBeLessThanOrEqual(2);
  });

  test('many of the agents of one organisation delay another organisation by one answer only', async () => {
    await using reader = readerFrom(1);
    const order: string[] = [];
    // Long enough that the order does not depend on which thread the machine lets run first.
    const long = JSON.stringify('\\u0041'.repeat(200_000));
    const read = (family: string, organisation: string) =>
      reader
        .read(answer(organisation === 'many' ? long : '{}'), patterns, of(family, organisation))
        .then(() => order.push(organisation));
    // Starts both threads, which takes longer than these reads.
    await Promise.all([read('x', 'many'), read('x', 'one')]);
    order.length = 0;
    await Promise.all([
      ...Array.from({ length: 9 }, (_, at) => read(`${at}`, 'many')),
      read('x', 'one'),
      ...Array.from({ length: 3 }, (_, at) => read(`${at}`, 'many')),
    ]);
    expect(order.indexOf('one')).toBeLessThanOrEqual(2);
    expect(order).toHaveLength(13);
  });

  test('of one organisation do not delay one of another, however many and long they are', async () => {
    await using reader = readerFrom(1);
    const order: string[] = [];
    const read = (family: string, organisation: string, text = '{}') =>
      reader.read(answer(text), patterns, of(family, organisation)).then(() => order.push(organisation));
    // Starts both threads.
    await Promise.all([read('a', 'many'), read('b', 'one')]);
    order.length = 0;
    const long = JSON.stringify('\\u0041'.repeat(500_000));
    await Promise.all([read('a', 'many', long), read('b', 'many', long), read('a', 'one')]);
    expect(order).toEqual(['one', 'many', 'many']);
  });

  test('is rejected when the reader closes, and nothing hangs', async () => {
    const reader = makeAnswerReader(1);
    const reads = Promise.allSettled([1, 2].map(() => reader.read(answer('{}'), patterns, of('a'))));
    await reader.close();
    expect((await reads).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await reader.close();
  });
});
