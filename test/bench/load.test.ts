import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createHistogram } from '../../bench/histogram.ts';
import { createResponseReader } from '../../bench/response.ts';

/** Random responses; `written` returns the bytes that a server sends for one, and its status. */
const answers = fc.record({
  kind: fc.constantFrom('length', 'chunks', 'empty'),
  // Content that looks like HTTP framing.
  content: fc.array(fc.constantFrom('\r\n', '0', '0\r\n\r\n', 'HTTP/1.1 500 No', 'x'), { maxLength: 40 }),
  cut: fc.nat(),
});

function written({ kind, content, cut }: { kind: string; content: string[]; cut: number }): [Buffer, number] {
  const body = content.join('');
  const chunk = (text: string) => (text === '' ? '' : `${text.length.toString(16)}\r\n${text}\r\n`);
  const at = body === '' ? 0 : cut % body.length;
  switch (kind) {
    case 'length':
      return [Buffer.from(`HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: ${body.length}\r\n\r\n${body}`), 200];
    case 'chunks': {
      const chunks = `${chunk(body.slice(0, at))}${chunk(body.slice(at))}0\r\n\r\n`;
      return [Buffer.from(`HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`), 403];
    }
    default:
      return [Buffer.from('HTTP/1.1 304 Not Modified\r\nEtag: x\r\n\r\n'), 304];
  }
}

describe("the load generator's reader", () => {
  test('finds the end of each response, however it is split into pieces', () => {
    fc.assert(
      fc.property(fc.array(answers, { maxLength: 4 }), fc.array(fc.integer({ min: 1, max: 300 })), (all, sizes) => {
        const reader = createResponseReader();
        // The load generator reads every piece into the same buffer.
        const shared = Buffer.alloc(4_096);
        let piece = 0;
        for (const [bytes, status] of all.map(written)) {
          const read: number[] = [];
          for (let at = 0; at < bytes.length; ) {
            const size = Math.min(bytes.length - at, sizes[piece++ % sizes.length] ?? 7);
            bytes.copy(shared, 0, at, at + size);
            read.push(reader.push(shared.subarray(0, size)));
            shared.fill('A');
            at += size;
          }
          expect(read.pop()).toBe(status);
          expect(read.every((early) => early === 0)).toBe(true);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([
    ['is not an HTTP response', 'garbage\r\n\r\n'],
    ['continues after its Content-Length', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab'],
    ['has neither a length nor chunks', 'HTTP/1.1 200 OK\r\n\r\nx'],
    ['continues after its last chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nHTTP'],
  ])('refuses a response that %s', (_what, bytes) => {
    expect(() => createResponseReader().push(Buffer.from(bytes))).toThrow(/answer/);
  });
});

describe("the load generator's histogram", () => {
  test('is off by less than 1 % at each quantile, from a hundred nanoseconds to a minute', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: -8, max: 11, noNaN: true }), { minLength: 1, maxLength: 500 }), (logs) => {
        const values = logs.map(Math.exp).sort((a, b) => a - b);
        const histogram = createHistogram();
        for (const value of values) histogram.record(value);
        const read = histogram.read();
        for (const [share, found] of [
          [0.5, read.p50],
          [0.9, read.p90],
          [0.99, read.p99],
        ] as const) {
          const exact = values[Math.ceil(values.length * share) - 1]!;
          expect(Math.abs(found - exact)).toBeLessThanOrEqual(Math.max(exact * 0.01, 0.0001));
        }
        expect(read.max).toBe(values.at(-1));
      }),
    );
  });

  test('reports zeros when nothing was recorded', () => {
    expect(createHistogram().read()).toEqual({ p50: 0, p90: 0, p99: 0, max: 0 });
  });
});
