/** JSON whose integers keep their digits. */
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { parseExactJson } from '../../mcp/client/exact-json.ts';

test('integers beyond the precision of a double are parsed to text, every other value is unchanged', () => {
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n }),
      fc.double({ noNaN: true, noDefaultInfinity: true, noInteger: true }),
      (big, part) => {
        const text = `{"big":${big},"part":${JSON.stringify(part)},"list":[${big}],"text":"${big}"}`;
        const value = Number.isSafeInteger(Number(big)) && BigInt(Number(big)) === big ? Number(big) : String(big);
        const parsed = parseExactJson(text) as { part: number };
        expect(parsed).toMatchObject({ big: value, list: [value], text: String(big) });
        expect(JSON.stringify(parsed.part)).toBe(JSON.stringify(part));
      },
    ),
    { numRuns: 200 },
  );
});

/** The reference implementation with a reviver: returns its result, or that the text is not JSON. */
function byReviver(text: string): unknown {
  const digits = (_: string, value: unknown, { source = '' } = {}) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source) ? source : value;
  return attempted(() => JSON.parse(text, digits as (key: string, value: unknown) => unknown));
}

function attempted(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch (error) {
    return (error as Error).name;
  }
}

const PIECES = [
  '1234567890123456',
  '9007199254740993',
  '0',
  '9',
  '-',
  '+',
  '.',
  'e',
  '"',
  '\\',
  ',',
  ':',
  ' ',
  '\n',
  'é',
];
const pieces = fc.string({ unit: fc.constantFrom(...PIECES), maxLength: 12 });
const number = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.bigInt({ min: 0n, max: 10n ** 20n }),
    fc.constantFrom('', '.5', '.1234567890123456789'),
  )
  .chain((parts) =>
    fc.constantFrom('', 'e2', 'E-12345678901234567', 'e+1234567890123456').map((power) => parts.join('') + power),
  );
const spaced = (one: fc.Arbitrary<string>) =>
  fc.tuple(fc.constantFrom('', ' ', '\r\n\t'), one).map((parts) => parts.join(''));
const { json } = fc.letrec<{ json: string }>((tie) => {
  const list = fc.array(tie('json'), { maxLength: 4 }).map((items) => `[${items}]`);
  const member = fc.tuple(spaced(pieces.map((name) => JSON.stringify(name))), spaced(fc.constant(':')), tie('json'));
  const object = fc.array(member, { maxLength: 4 }).map((members) => `{${members.map((parts) => parts.join(''))}}`);
  return {
    json: fc.oneof({ maxDepth: 3 }, spaced(number), spaced(pieces.map((one) => JSON.stringify(one))), list, object),
  };
});

test.each([
  ['any JSON', json],
  [
    'what is mostly no JSON',
    fc.array(fc.oneof(pieces, number, fc.constantFrom('[', ']', '{', '}'))).map((all) => all.join('')),
  ],
  [
    'JSON that is damaged',
    fc
      .tuple(json, fc.nat(), pieces)
      .map(
        ([text, at, more]) => `${text.slice(0, at % (text.length + 1))}${more}${text.slice(at % (text.length + 1))}`,
      ),
  ],
])('%s is parsed as by a reviver', (_, texts) => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(attempted(() => parseExactJson(text))).toEqual(byReviver(text));
    }),
    { numRuns: 1_000 },
  );
});

test('parsing calls no reviver for each value, which would take forty times as long', () => {
  const parse = vi.spyOn(JSON, 'parse');
  onTestFinished(() => parse.mockRestore());
  expect(parseExactJson('[1234567890123456789,1]')).toEqual(['1234567890123456789', 1]);
  expect(parse.mock.calls).toEqual([['["1234567890123456789",1]']]);
});
