import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { methodField, methodSearch } from '../../broker/calls/method-search.ts';
import { runToEnd } from '../../broker/runtime/pace.ts';

const FORM = 'application/x-www-form-urlencoded';
const PARTS = 'multipart/form-data; boundary=b';
const JSON_TYPE = 'application/json';
const BITS =
  `--b|\r\n|\n|\r\n\r\n|;|name|=|"|_method|\\|_m\\eth|od"|*|utf-8''|%5f|%|[x]|&|+| |\t|; name="_method"|x-http-method-override|é|\0|{|}|:|,|"_method"|"DELETE"`.split(
    '|',
  );
const anything = fc.array(fc.constantFrom(...BITS), { maxLength: 30 }).map((bits) => bits.join(''));
const text = fc.oneof(
  anything,
  fc
    .tuple(fc.constantFrom('; name="', ';name=', '; name*='), anything)
    .map((of) => `--b\r\nX: form-data${of.join('')}`),
  anything.map((of) => `{${of}`),
);

describe.each([FORM, PARTS, 'multipart/form-data', `${PARTS}; boundary=c`, JSON_TYPE, `${FORM}, ${JSON_TYPE}`])(
  '%s',
  (type) => {
    test('gives the same result however the body is split', () => {
      fc.assert(
        fc.property(text, fc.array(fc.nat(60), { maxLength: 6 }), (form, places) => {
          const bytes = Buffer.from(form);
          const search = methodSearch(type)!;
          const ends = [...places.map((at) => at % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
          let from = 0;
          let found: string | undefined;
          for (const end of ends) {
            found ??= search.push(bytes.subarray(from, end));
            from = end;
          }
          expect(found ?? search.end()).toBe(runToEnd(methodField(type, bytes)));
        }),
        { numRuns: 3_000 },
      );
    });
  },
);

test('a long body of another type is not searched', () => {
  expect(methodSearch('application/octet-stream')).toBeUndefined();
  expect(runToEnd(methodField('application/json', Buffer.from('_method=DELETE')))).toBeUndefined();
});

test.each<[string, string | undefined]>([
  ['{"_method":"DELETE"}', '_method'],
  ['\n {"a":{"b":["}\\""]},"\\u005fmethod" : " put "}', '_method'],
  ['{"a":1,"b":[],"c":null,"_METHOD":"DELETE"', '_METHOD'],
  ['{"_method":"DELETE', undefined],
  ['{"_method":"card","a":{"_method":"DELETE"},"b":["_method","DELETE"],"DELETE":"_method"}', undefined],
  ['{"_method":{"a":"DELETE"}}', undefined],
  ['{"a":1}{"_method":"DELETE"}', undefined],
  ['["_method","DELETE"]', undefined],
  ['"_method":"DELETE"', undefined],
])('in JSON: %s', (json, found) => {
  expect(runToEnd(methodField(JSON_TYPE, Buffer.from(json)))).toBe(found);
});

test('a name is found after megabytes of other content', () => {
  const filler = Buffer.alloc(3 * 1024 * 1024, 'x');
  const file = '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n';
  const field = '\r\n--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--b--\r\n';
  expect(runToEnd(methodField(PARTS, Buffer.concat([Buffer.from(file), filler, Buffer.from(field)])))).toBe('_method');
  expect(runToEnd(methodField(FORM, Buffer.concat([Buffer.from('a='), filler, Buffer.from('&_method=x')])))).toBe(
    '_method',
  );
});

test('blanks before a name do not hide it, and too many of them are refused', () => {
  const head = (blanks: number) =>
    Buffer.from(
      `--b\r\nContent-Disposition: form-data;${' '.repeat(blanks)}name=${' '.repeat(blanks)}"_method"\r\n\r\nDELETE\r\n--b--`,
    );
  expect(runToEnd(methodField(PARTS, head(30_000)))).toBe('_method');
  expect(runToEnd(methodField(PARTS, head(100_000)))).toContain('64 KiB');
});
