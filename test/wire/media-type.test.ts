import { expect, test } from 'vitest';
import { charsetsOf, essenceOf, isUtf8Name } from '../../broker/wire/media-type.ts';

test.each([
  ['text/plain', 'text/plain', []],
  [' Text/Event-Stream ; Charset="UTF-8"', 'text/event-stream', ['utf-8']],
  ['text/plain;charset = utf-16', 'text/plain', ['utf-16']],
  ['text/plain; charset=utf-8; charset=utf-7', 'text/plain', ['utf-8', 'utf-7']],
  ['text/plain; x-charset=utf-16', 'text/plain', []],
  ['charset=utf-8', 'charset=utf-8', []],
  ['', '', []],
])('the type and the charsets of "%s"', (header, essence, charsets) => {
  expect(essenceOf(header)).toBe(essence);
  expect(charsetsOf(header)).toEqual(charsets);
});

test('names of UTF-8 include those that clients use, and its subset US-ASCII', () => {
  for (const name of ['utf-8', 'UTF8', 'us-ascii']) expect(isUtf8Name(name)).toBe(true);
  for (const name of ['', 'utf-16', 'utf-8x', 'latin1', ' utf-8']) expect(isUtf8Name(name)).toBe(false);
});
