/** Measures the search for the credential in an answer. It runs on the main thread, so it adds to the time of each call. */
import { randomBytes } from 'node:crypto';
import { Secret } from '../broker/crypto/secret.ts';
import { readAnswer } from '../broker/egress/answers/answer.ts';
import { makeCredentialPatterns } from '../broker/egress/credential-search/patterns.ts';
import { StreamedCredential } from '../broker/egress/credential-search/stream.ts';

/** One kind of answer: its size in bytes, and for each run the CPU microseconds to read one. */
export type AnswerCost = { name: string; bytes: number; micros: number[] };

const ITEM = {
  number: 1_347,
  title: 'Checkout shows the wrong shipping cost for islands',
  body: 'It says "free" for <b>Crete</b> & Malta.\r\nSteps: add, pay, look.',
  url: 'https://issues.example/shop/storefront/issues/1347?per_page=100%20',
};
const MEBIBYTE = 1_048_576;
const RUNS = 5;
/** Bytes read in a run, whatever the size of an answer. */
const BYTES_PER_RUN = 10 * MEBIBYTE;

const CREDENTIAL = new Secret('svc-broker:sk/Ab+c=d&e~f*g!h"i<jQ9zz==');

/** Reads answers of usual sizes, and the worst known answer of the largest size. Takes some seconds. */
export function measureAnswers(): AnswerCost[] {
  const patterns = makeCredentialPatterns(CREDENTIAL, { basic: true });
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  return [...bodies()].map(([name, body]) => {
    const times = Math.max(1, Math.round(BYTES_PER_RUN / Math.max(body.length, 10_000)));
    const run = () => {
      const before = process.cpuUsage();
      for (let time = 0; time < times; time++) {
        const read = readAnswer({ status: 200, headers, body }, patterns);
        if (read.kind !== 'data' || read.redacted)
          throw new Error(`a credential was found in ${name}, which holds none`);
      }
      const { user, system } = process.cpuUsage(before);
      return (user + system) / times;
    };
    run();
    return { name, bytes: body.length, micros: Array.from({ length: RUNS }, run) };
  });
}

const PIECE = 64 * 1024;

/** Searches streams of 1 GiB for the credential, in pieces of the size that a socket delivers. */
export function measureStreams(): AnswerCost[] {
  const credential = new StreamedCredential(CREDENTIAL, { basic: true });
  const items = Buffer.from(JSON.stringify(Array.from({ length: 1_000 }, () => ITEM)));
  const lines = randomBytes(PIECE)
    .toString('base64')
    .replace(/(.{76})/g, '$1\n');
  const kinds = {
    'a stream of items': items,
    'of base64 in lines': Buffer.from(lines),
    'of random bytes': randomBytes(PIECE),
  };
  return Object.entries(kinds).map(([name, whole]) => {
    const piece = whole.subarray(0, PIECE);
    const pieces = 2 ** 30 / PIECE;
    const run = () => {
      const search = credential.search({ mask: true });
      const before = process.cpuUsage();
      for (let i = 0; i < pieces; i++) search.push(piece);
      const { user, system } = process.cpuUsage(before);
      if (search.found) throw new Error(`a credential was found in ${name}, which holds none`);
      return user + system;
    };
    run();
    return { name, bytes: pieces * PIECE, micros: Array.from({ length: RUNS }, run) };
  });
}

function bodies(): Map<string, Buffer> {
  const list = (items: number) => Buffer.from(JSON.stringify(Array.from({ length: items }, () => ITEM)));
  const full = (piece: string) => Buffer.from(`"${piece.repeat((10 * MEBIBYTE - 2) / piece.length)}"`);
  return new Map([
    ['one item', list(1)],
    ['a page of 100 items', list(100)],
    ['1 MiB of items', list(Math.floor(MEBIBYTE / list(1).length))],
    ['10 MiB of items', list(Math.floor((10 * MEBIBYTE) / list(1).length))],
    ['10 MiB of JSON escapes', full('\\u0041')],
    ['10 MiB of percent escapes', full('%252541')],
    ['10 MiB of HTML entities', full('&amp;amp;amp;')],
    [
      '10 MiB of base64 of base64',
      full(Buffer.from(Buffer.from('a text in base64 ').toString('base64')).toString('base64')),
    ],
  ]);
}
