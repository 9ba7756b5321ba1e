/** Long texts are parsed in parts, with the same result as in one piece. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseStrictJson, parseStrictJsonInParts } from '../../json/strict.ts';

const PART = 32 * 1024;

async function inParts(text: string, limits = {}) {
  let rests = 0;
  const rest = async () => {
    rests++;
  };
  return { parsed: await parseStrictJsonInParts(text, limits, rest), rests };
}

describe('a long text', () => {
  test.each([
    ['of one string', `"${'a'.repeat(20 * PART)}"`],
    ['of one member name', `{"${'a'.repeat(20 * PART)}":1}`],
    ['of escapes', `["${'\\n'.repeat(10 * PART)}"]`],
    ['of small values', `[${'0,'.repeat(10 * PART)}0]`],
    ['of member names', `{${Array.from({ length: 2 * PART }, (_, i) => `"n${i}":${i}`).join(',')}}`],
  ])('%s is parsed with a pause after each part', async (_name, text) => {
    const { parsed, rests } = await inParts(text);
    expect(parsed).toMatchObject({ ok: true, value: JSON.parse(text) });
    expect(rests).toBeGreaterThanOrEqual(Math.floor(text.length / PART));
  });

  test('with a lone surrogate is refused', async () => {
    expect((await inParts(`"${'a'.repeat(PART)}\ud800"`)).parsed).toEqual(parseStrictJson('"\ud800"'));
  });

  test('has the same result as in one piece, wherever a part ends (property)', async () => {
    const unit = fc.constantFrom(
      '\\ud83d',
      '\\ude00',
      '\\u0000',
      'a',
      '\\n',
      '\\"',
      '\\\\',
      '\\x',
      '😀',
      '"',
      '\t',
      '":1,"b',
      '1e999',
    );
    const before = fc.constantFrom('"', '["', '{"', '{"data":["', '[1,{"a":"');
    const after = fc.constantFrom('"', '"]', '":1}', '"]}', '"}]', '');
    await fc.assert(
      fc.asyncProperty(
        before,
        fc.integer({ min: 0, max: 40 }),
        fc.array(unit, { maxLength: 12 }),
        fc.integer({ min: 0, max: 3 }),
        after,
        async (open, less, units, more, close) => {
          const text = `${open}${'a'.repeat(PART - less)}${units.join('')}${'b'.repeat(more * PART)}${close}`;
          const limits = { nulAllowedIn: ['data'] };
          expect((await inParts(text, limits)).parsed).toEqual(parseStrictJson(text, limits));
        },
      ),
      { numRuns: 500 },
    );
  });
});
