import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isJsonWithin, memberTexts } from '../../json/member-texts.ts';

const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test('isJsonWithin accepts exactly the texts that JSON.parse accepts', () => {
  const piece = fc.constantFrom(
    ...[
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '1',
      '-',
      '0',
      '.',
      'e',
      '+',
      'true',
      'nul',
      ' ',
      '\n',
      '\\',
      '\\u',
      '\\u00e9',
    ],
    ...['\\ud800', '\\x', '\t', '\0', '\ud800', '{"a":1}', '[1]', '1e999', '\u00a0', '\ufeff', '"a":'],
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join('');
      expect(isJsonWithin(text, 12), text).toBe(parses(text));
    }),
    { numRuns: 20_000 },
  );
});

test('isJsonWithin accepts a text within its depth, and refuses it within one level less', () => {
  for (const [text, depth] of [
    ['1', 0],
    ['[]', 1],
    ['{"a":[{"[[[[":1}],"b":{}}', 3],
    ['['.repeat(100_000) + ']'.repeat(100_000), 100_000],
  ] as const) {
    expect(isJsonWithin(text, depth)).toBe(true);
    expect(isJsonWithin(text, depth - 1)).toBe(false);
  }
});

describe('memberTexts, the members of an object as they are written', () => {
  test('has the names and values of the object', () => {
    const space = fc.constantFrom('', ' ', '\n\t');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), space, (object, indent) => {
        const text = JSON.stringify(object, null, indent);
        const members = memberTexts(text)!;
        expect([...members.keys()].sort()).toEqual(Object.keys(object).sort());
        for (const [name, written] of members)
          expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(object[name])));
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['{"a":1,"a":2}', undefined],
    ['{"a":1,"\\u0061":2}', undefined],
    ['{}', []],
    [' { "a" : [ {"a":1} , "}" ] , "b" : 1.10 } ', ['[ {"a":1} , "}" ]', '1.10']],
  ])('%s', (text, written) => {
    const members = memberTexts(text);
    expect(members && [...members.values()]).toEqual(written);
  });
});
