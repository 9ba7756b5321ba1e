/** Reads of MCP server answers, with arbitrary content. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mirrored, mirroredArguments, parameterHeaders } from '../../broker/egress/mcp/mirror.ts';
import { readingRpc, readRpc, untilAnswered } from '../../broker/egress/mcp/rpc.ts';
import { runToEnd } from '../../broker/runtime/pace.ts';
import { longestTurn, machineMs } from '../world/longest-turn.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';

const ID = '3b1f6c1e-0000-4000-8000-000000000001';
const answer = (body: string, type = 'application/json', status = 200) => ({
  kind: 'answer' as const,
  status,
  headers: { 'content-type': type },
  body: Buffer.from(body),
});

describe('an MCP answer', () => {
  test('is the result with the request id, byte for byte, as JSON and in a stream', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue(), { noNullPrototype: true }), (result) => {
        const written = JSON.stringify(result);
        fc.pre(result.resultType === undefined);
        const message = `{"jsonrpc":"2.0","result":${written},"id":"${ID}"}`;
        for (const [body, type] of [
          [message, 'application/json; charset=utf-8'],
          [`: hello\nevent: message\ndata: ${message}\n\n`, 'text/event-stream'],
        ] as const)
          expect(runToEnd(readingRpc(answer(body, type), ID))).toMatchObject({ kind: 'result', text: written });
      }),
      { numRuns: 100 },
    );
  });

  test('never throws for any content, and only a response with the request id is a result', () => {
    const type = fc.constantFrom('application/json', 'text/event-stream', 'text/html', '');
    const text = fc.oneof(
      fc.string(),
      fc.json(),
      fc.json().map((json) => `data: ${json}\n\n`),
    );
    fc.assert(
      fc.property(text, type, fc.constantFrom(200, 202, 400, 404, 500), (body, contentType, status) => {
        expect(['unreachable', 'http']).toContain(runToEnd(readingRpc(answer(body, contentType, status), ID)).kind);
      }),
      { numRuns: 300 },
    );
  });

  test('in a stream may be followed by a part of a character', () => {
    const message = `{"jsonrpc":"2.0","id":"${ID}","result":{"text":"é"}}`;
    const body = Buffer.concat([Buffer.from(`data: ${message}\n\ndata: `), Buffer.from('é').subarray(0, 1)]);
    const stream = { ...answer('', 'text/event-stream'), body };
    expect(runToEnd(readingRpc(stream, ID))).toMatchObject({ kind: 'result', text: '{"text":"é"}' });
  });

  test('in a stream is read up to the response, however the stream is split', () => {
    const notice = '{"jsonrpc":"2.0","method":"notifications/message","params":{"text":"é"}}';
    const message = `{"jsonrpc":"2.0","id":"${ID}","result":{"text":"é😀"}}`;
    const whole = Buffer.from(`data: ${notice}\n\n: beat\n\ndata: ${message}\n\n`);
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length), { maxLength: 8 }), (cuts) => {
        const enough = untilAnswered();
        const at = [0, ...cuts.sort((a, b) => a - b), whole.length];
        const pieces = at.slice(1).map((end, i) => whole.subarray(at[i], end));
        const headers = { 'content-type': 'text/event-stream' };
        const said = pieces.map((piece) => enough(piece, headers));
        expect(said.at(-1)).toBe(true);
        // Not before the response was complete.
        expect(
          pieces.slice(0, Math.max(0, said.indexOf(true))).reduce((sum, piece) => sum + piece.length, 0),
        ).toBeLessThan(whole.length);
      }),
      { numRuns: 100 },
    );
    expect(untilAnswered()(whole, { 'content-type': 'application/json' })).toBe(false);
  });
});

test('a byte order mark before a stream is ignored once, both when streamed and when buffered', () => {
  const message = `{"jsonrpc":"2.0","id":"${ID}","result":{}}`;
  const once = `\ufeffdata: ${message}\n\n`;
  const enough = (body: string) => untilAnswered()(Buffer.from(body), { 'content-type': 'text/event-stream' });
  expect([enough(once), runToEnd(readingRpc(answer(once, 'text/event-stream'), ID)).kind]).toEqual([true, 'result']);
  const twice = `\ufeff${once}`;
  expect([enough(twice), runToEnd(readingRpc(answer(twice, 'text/event-stream'), ID)).kind]).toEqual([
    false,
    'unreachable',
  ]);
});

describe('an answer of 9 MB is read in slices', () => {
  const unit = machineMs(Array.from({ length: 5_000 }, (_, i) => `${i} ${'a\n'.repeat(225)}`));
  const names = `{${Array.from({ length: 900_000 }, (_, i) => `"${i.toString(36)}":0`).join(',')}}`;
  const message = (member: string, value = names) => `{"jsonrpc":"2.0","id":"${ID}","${member}":${value}}`;

  test.each([
    ['is read in turns', message('result', `{"a":${names}}`), 'application/json', 'result'],
    ['with too many members is refused in turns', message('result'), 'application/json', 'unreachable'],
    ['in a stream is read in turns', `data: ${message('result', `{"a":${names}}`)}\n\n`, 'text/event-stream', 'result'],
    ['that is an error is refused in turns', message('error'), 'application/json', 'unreachable'],
    ['of a thousand notices is read in turns', `data: ${message('method')}\n\n`, 'text/event-stream', 'unreachable'],
    ['without the end of an event is read in turns', 'data: x\n'.repeat(1_100_000), 'text/event-stream', 'unreachable'],
  ])('%s', { timeout: scaledTimeout(90_000) }, async (_, body, type, kind) => {
    const whole = answer(body, type);
    let read: string | undefined;
    const longest = await longestTurn(async () => {
      read = (await readRpc(whole, ID)).kind;
    });
    expect(read).toBe(kind);
    // Parsed in one piece it would take 10 units and more.
    expect(longest).toBeLessThan(2 * unit);
  });
});

describe('arguments mirrored in headers', () => {
  const schema = {
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      inner: {
        properties: { n: { type: 'integer', 'x-mcp-header': 'N' }, flag: { type: 'boolean', 'x-mcp-header': 'F' } },
      },
    },
  };

  test('are the marked ones that are present', () => {
    expect(parameterHeaders(schema, { region: 'eu', inner: { n: 7, flag: false } })).toEqual({
      'mcp-param-region': 'eu',
      'mcp-param-n': '7',
      'mcp-param-f': 'false',
    });
    expect(parameterHeaders(schema, { region: null, inner: {} })).toEqual({});
    expect(parameterHeaders(schema, { inner: { n: 1e300 } })).toEqual({});
  });

  test('any text is transferred, as exactly one header', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const value = mirrored(text);
        expect(value).toMatch(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/);
        const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
        expect(encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8')).toBe(text);
      }),
    );
    expect(mirrored('a\r\nx: b')).toMatch(/^=\?base64\?/);
    expect(mirrored('=?base64?eA==?=')).not.toBe('=?base64?eA==?=');
  });

  test.each([
    { type: 'string', 'x-mcp-header': 'A' },
    { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } },
    { properties: { a: { type: 'string', 'x-mcp-header': 'a b' } } },
    { properties: { a: { type: 'string', 'x-mcp-header': '' } } },
    { properties: { a: { items: { type: 'string', 'x-mcp-header': 'A' } } } },
    { $defs: { a: { type: 'string', 'x-mcp-header': 'A' } } },
    { properties: { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } } },
  ])('a tool with invalid marks is not called: %j', (broken) => {
    expect(mirroredArguments(broken)).toBeUndefined();
    expect(mirroredArguments(schema)?.size).toBe(3);
  });

  test('more marks than servers accept are invalid, in any number', () => {
    const marked = (count: number) => {
      const one = (_: unknown, i: number) => [`p${i}`, { type: 'string', 'x-mcp-header': `H${i}` }];
      return { properties: Object.fromEntries(Array.from({ length: count }, one)) };
    };
    expect(mirroredArguments(marked(64))?.size).toBe(64);
    expect(mirroredArguments(marked(65))).toBeUndefined();
    expect(mirroredArguments(marked(20_000))).toBeUndefined();
  });
});
