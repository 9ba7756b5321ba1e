/** Reading the lines of an export from a stream; the author of the file determines how long they are. */
import { describe, expect, test } from 'vitest';
import { lineIn, linesOf, MAX_LINE } from '../../broker/console/static/verify/export-lines.js';

const allOf = async (pieces: Iterable<string>): Promise<string[]> => {
  const lines: string[] = [];
  for await (const line of linesOf(ReadableStream.from(pieces))) lines.push(line);
  return lines;
};

describe('lines of an export', () => {
  test('are the same however the file is split into chunks', async () => {
    const text = 'one\ntwo\u2028three\n\n{"four":4}\r\nfive';
    for (const width of [1, 2, 3, 7, text.length]) {
      const pieces = Array.from({ length: Math.ceil(text.length / width) }, (_, at) =>
        text.slice(at * width, (at + 1) * width),
      );
      expect(await allOf(pieces)).toEqual(['one', 'two\u2028three', '', '{"four":4}\r', 'five']);
    }
    expect(await allOf(['one\n'])).toEqual(['one', '']);
  });

  test('are buffered only up to the maximum length of a row: a longer line is invalid, and the next one is read', async () => {
    const piece = ' '.repeat(2 ** 20);
    function* endless(): Generator<string> {
      yield '{"type":"tile","level":0,"index":0,"hashes":""}';
      for (let at = 0; at < 64; at++) yield piece;
      yield '\nnext';
    }
    const [long = '', ...more] = await allOf(endless());
    expect(long.length).toBeGreaterThan(MAX_LINE);
    expect(long.length).toBeLessThanOrEqual(MAX_LINE + piece.length);
    expect(more).toEqual(['next']);
    // Cut to the maximum length, the line would be valid.
    expect([lineIn(long), lineIn(long.slice(0, MAX_LINE))?.type]).toEqual([undefined, 'tile']);
  });
});
