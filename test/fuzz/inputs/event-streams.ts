/**
 * Event streams of MCP servers: however they are split into chunks, the same is read, up to the same end, and the found answer is the one that a
 * parser written from the standard (HTML, "Interpreting an event stream") finds.
 */
import { isUtf8 } from 'node:buffer';
import fc from 'fast-check';
import { expect } from 'vitest';
import { readingRpc, untilAnswered } from '../../../broker/egress/mcp/rpc.ts';
import { runToEnd } from '../../../broker/runtime/pace.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const ID = 'i1';
const HEADERS = { 'content-type': 'text/event-stream' };

const message = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(`{"jsonrpc":"2.0","id":"${ID}","result":{"a":"é😀"}}`) },
  { weight: 4, arbitrary: fc.constantFrom('{"jsonrpc":"2.0","method":"notifications/x","params":{"t":"é"}}') },
  fc.constantFrom(
    `{"jsonrpc":"2.0","id":"${ID}","error":{"code":-1,"message":"no"}}`,
    '{"jsonrpc":"2.0","id":"other","result":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"ping"}',
    '{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}',
    `{"jsonrpc":"2.0","id":"${ID}","result":{},"result":{"b":1}}`,
    '{"jsonrpc":"2.0",',
    'x',
    '',
  ),
);
const end = fc.constantFrom('\n', '\n', '\r\n', '\r');
const line = fc.oneof(
  { weight: 5, arbitrary: message.map((text) => `data: ${text}`) },
  { weight: 2, arbitrary: fc.constant('') },
  message.map((text) => `data:${text}`),
  fc.constantFrom(
    'data',
    'data:',
    'data:  ',
    ': beat',
    'event: message',
    'id: 1',
    'id: \0',
    'retry: 10',
    'retry: x',
    'x: y',
    ' data: {}',
    'Data: {}',
    '\ufeffdata: {}',
    ':',
  ),
);
const stream = fc
  .tuple(
    fc.constantFrom('', '', '', '\ufeff', '\ufeff\ufeff'),
    fc.array(fc.tuple(line, end, fc.constantFrom(false, true)), { maxLength: 9 }),
  )
  .map(([mark, lines]) => mark + lines.map(([text, over, isLast]) => text + over + (isLast ? over : '')).join(''));
const bytes = fc
  .tuple(stream, fc.nat(400), fc.constantFrom(undefined, undefined, undefined, 0x0a, 0x0d))
  .map(([text, at, put]) => {
    const whole = Buffer.from(text);
    return put === undefined ? whole : Buffer.concat([whole.subarray(0, at), Buffer.of(put), whole.subarray(at)]);
  });

/** Returns the data of a stream's events of the type `message`, the default; events of other types are not messages of MCP. */
function eventsOf(text: string): string[] {
  const found: string[] = [];
  let data: string[] | undefined;
  let type = '';
  // Text after the last line end is not a line.
  for (const one of text.split(/\r\n|\n|\r/).slice(0, -1)) {
    if (one === '') {
      if (['', 'message'].includes(type) && data !== undefined && data.join('\n') !== '') found.push(data.join('\n'));
      data = undefined;
      type = '';
    } else {
      const [, name, value = ''] = /^([^:]*)(?::( ?.*))?$/s.exec(one) ?? [];
      if (name === 'data') data = [...(data ?? []), value.replace(/^ /, '')];
      if (name === 'event') type = value.replace(/^ /, '');
    }
  }
  return found;
}

export function eventStreams(count: Count): Fuzzed {
  const property = fc.property(bytes, fc.array(fc.nat(600), { maxLength: 12 }), (body, cuts) => {
    // As in the standard: UTF-8 with replacement characters, without a byte order mark.
    const events = eventsOf(new TextDecoder().decode(body));
    const read = runToEnd(readingRpc({ kind: 'answer', status: 200, headers: HEADERS, body }, ID));

    const at = [0, ...cuts.map((cut) => Math.min(cut, body.length)).toSorted((a, b) => a - b), body.length];
    const whole = untilAnswered()(body, HEADERS);
    const inPieces = untilAnswered();
    const isEnough = at.slice(1).map((to, i) => inPieces(body.subarray(at[i], to), HEADERS));
    expect(isEnough.at(-1)).toBe(whole);
    // Once complete, it stays complete with more chunks.
    expect(isEnough.slice(Math.max(0, isEnough.indexOf(true))).every((one) => one === whole)).toBe(true);

    const messages = events.map((text) => {
      try {
        return JSON.parse(text);
      } catch {
        return undefined;
      }
    });
    const isNotice = (one: { method?: string; id?: unknown } | undefined) =>
      one?.method !== undefined && (one.id === undefined || one.method === 'ping');
    expect(whole).toBe(messages.some((one) => !isNotice(one)));
    const own = messages.filter((one) => one?.id === ID && one.method === undefined);
    const isWhole = typeof own[0]?.result === 'object' || typeof own[0]?.error?.message === 'string';
    // A message with replaced bytes is not what the server sent. Text after the last line end is not read.
    const isIntact = isUtf8(body.subarray(0, 1 + Math.max(body.lastIndexOf('\n'), body.lastIndexOf('\r'))));
    const isAnswer =
      isIntact &&
      own.length === 1 &&
      isWhole &&
      messages.every((one) => one?.jsonrpc === '2.0' && (isNotice(one) || one.id === ID)) &&
      // A duplicate member is not a valid answer.
      !/"result".*"result"/.test(events[messages.indexOf(own[0])] ?? '');
    count(isAnswer ? 'answered' : 'not answered');
    expect(read.kind, JSON.stringify(read)).toBe(!isAnswer ? 'unreachable' : own[0].error ? 'error' : 'result');
    if (read.kind === 'result') expect(JSON.parse(read.text)).toEqual(own[0].result);
  });
  return { property, reaches: ['answered', 'not answered'] };
}
