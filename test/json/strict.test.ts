import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { parseStrictJson } from '../../json/strict.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import type { ParsedMemory } from './parsed-memory.ts';

const value = (text: string, limits = {}) => {
  const parsed = parseStrictJson(text, limits);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
};
const error = (text: string, limits = {}) => {
  const parsed = parseStrictJson(text, limits);
  return parsed.ok ? 'accepted' : parsed.error;
};
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe('the estimate of the memory that a value takes', () => {
  const list = (piece: (at: number) => string) => `[${Array.from({ length: 60_000 }, (_, at) => piece(at)).join()}]`;
  const worker = new Worker(new URL('parsed-memory.ts', import.meta.url));
  afterAll(() => worker.terminate());
  const measured = async (text: string): Promise<ParsedMemory> => {
    worker.postMessage(text);
    const [found] = await once(worker, 'message');
    return found;
  };

  it.each([
    ['empty objects', list(() => '{}')],
    ['empty lists', list(() => '[]')],
    ['nested lists', list(() => nested(20))],
    ['short lists', list(() => '[0]')],
    ['objects of one member, each of another name', list((at) => `{"n${at}":0}`)],
    [
      'one object of many members',
      list((at) => `"n${at}":0`)
        .replace('[', '{')
        .replace(/]$/, '}'),
    ],
    ['members named by numbers', list((at) => `{"${(at * 7_919) % 999}":0}`)],
    ['numbers that are no integers', list((at) => `${at}.5,{}`)],
    ['different strings', list((at) => `"text number ${at}"`)],
  ])('is close to it: %s', async (_name, text) => {
    // The second time: what the parser compiles and caches was there before.
    await measured(text);
    const { estimated, taken } = await measured(text);
    expect(estimated).toBeGreaterThan(0.85 * taken);
    expect(estimated).toBeLessThan(2.5 * taken);
  });
});

describe('valid JSON', () => {
  it('is accepted, with the value of JSON.parse', () => {
    for (const text of [
      'null',
      ' true ',
      '\t"a"\r\n',
      '0',
      '-1.5',
      '[]',
      '{}',
      '[1,[2,{"a":[]}]]',
      '{"a":1,"b":{"a":2}}',
      '"\\u00e9\\n\\/"',
      '"\\ud83d\\ude00"',
      '"😀"',
      '{"":0}',
      '[{"x":1},{"x":2}]',
      '{"a":[],"b":[1]}',
      '"\u2028"',
    ]) {
      expect(value(text), text).toEqual(JSON.parse(text));
    }
  });

  it('is accepted whenever JSON.stringify wrote it', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 2), (any, indent) => {
        const text = JSON.stringify(any, null, indent);
        if (!text.isWellFormed() || /\\u0000|\\ud[89a-f]/i.test(text)) return;
        expect(value(text)).toEqual(JSON.parse(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('BD-01 a member called __proto__', () => {
  it('is an own member of its object, and pollutes no prototype', () => {
    const parsed = value('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') as object;
    expect(Object.keys(parsed)).toEqual(['__proto__', 'constructor']);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(error('{"__proto__":1,"__proto__":2}')).toBe('/__proto__: this member name is there twice');
  });
});

describe('BD-02 depth', () => {
  it('64 levels are accepted, 65 are refused, 400,000 are refused immediately', () => {
    expect(value(nested(64))).toEqual(JSON.parse(nested(64)));
    expect(error(nested(65))).toBe('offset 64: nested deeper than 64 levels');
    expect(error(nested(400_000))).toBe('offset 64: nested deeper than 64 levels');
    expect(error('{"a":'.repeat(400_000))).toBe('offset 320: nested deeper than 64 levels');
    expect(error(nested(3), { maxDepth: 2 })).toBe('offset 2: nested deeper than 2 levels');
  });
});

describe('BD-03 numbers that would change their value', () => {
  it.each([
    '1e999',
    '-1e999',
    '12345678901234567890',
    '0.1000000000000000055',
    '9007199254740993',
    '1e-999',
    '1.7976931348623159e308',
    '100000000000000000000000001',
  ])('%s is refused, with its place', (number) => {
    expect(error(`{"data":{"n":[0,${number}]}}`)).toBe(
      `/data/n/1: the number ${number} would be sent as another number; send it as a string`,
    );
  });
  it.each([
    '1.0',
    '1e2',
    '-0',
    '0e999999999',
    '0.1',
    '9007199254740992',
    '1E+2',
    '123456789012345',
    '1e21',
    '1.7976931348623157e308',
    '5e-324',
    '0.000001',
    '1e-7',
    '12345678901234567000',
    '100000000000000000000',
  ])('%s is accepted', (number) => {
    expect(value(`[${number}]`)).toEqual(JSON.parse(`[${number}]`));
  });
  it('every double is accepted in every notation', () => {
    const double = fc.double({ noNaN: true, noDefaultInfinity: true });
    fc.assert(
      fc.property(double, (n) => {
        expect(value(JSON.stringify(n))).toBe(JSON.parse(JSON.stringify(n)));
        expect(value(n.toExponential())).toBe(JSON.parse(n.toExponential()));
      }),
      { numRuns: 2_000 },
    );
  });
  it('accepts exactly the numbers whose value is exact in big decimals', () => {
    const digits = fc.stringMatching(/^(0|[1-9][0-9]{0,24})(\.[0-9]{1,24})?$/);
    fc.assert(
      fc.property(digits, (text) => {
        const places = (text.split('.')[1] ?? '').length;
        const scaled = BigInt(text.replace('.', ''));
        // The number that JSON.stringify writes, as an integer of 60 decimal places.
        const [whole = '', rest = ''] = plainDecimal(Number(text)).split('.');
        const same = BigInt(whole + rest.padEnd(60, '0')) === scaled * 10n ** BigInt(60 - places);
        expect(parseStrictJson(text).ok).toBe(same);
      }),
      { numRuns: 3_000 },
    );
  });
  it('is linear: a million zeros take milliseconds', () => {
    const started = performance.now();
    expect(error(`1${'0'.repeat(1_000_000)}1`)).toMatch(/another number/);
    expect(error(`[0.${'0'.repeat(1_000_000)}1]`)).toMatch(/^\/0: the number 0\.0{38}… would/);
    expect(performance.now() - started).toBeLessThan(scaledTimeout(1_000));
  });
});

/** Formats a number as String(n) does, without an exponent. */
function plainDecimal(n: number): string {
  const [mantissa = '', exponent] = String(n).split('e');
  if (exponent === undefined) return mantissa;
  const [whole = '', rest = ''] = mantissa.split('.');
  const move = Number(exponent);
  if (move < 0) return `0.${'0'.repeat(-move - 1)}${whole}${rest}`;
  return whole + rest.padEnd(move, '0');
}

describe('BD-04 duplicate names', () => {
  it('are refused in every object, even when one is escaped', () => {
    expect(error('{"platform":"demo","platform":"other"}')).toBe('/platform: this member name is there twice');
    expect(error('{"data":{"a":[{"b":1,"b":1}]}}')).toBe('/data/a/0/b: this member name is there twice');
    expect(error('{"a":1,"\\u0061":2}')).toBe('/a: this member name is there twice');
    expect(error('{"a/b~c":1,"a\\/b~c":2}')).toBe('/a~1b~0c: this member name is there twice');
  });
  it('are found among many names, and many different names are accepted', () => {
    const names = Array.from({ length: 2_000 }, (_, i) => `"n${i}":${i}`);
    expect(value(`{${names.join(',')}}`)).toEqual(JSON.parse(`{${names.join(',')}}`));
    for (const again of [0, 5, 11, 12, 13, 1_999]) {
      expect(error(`{${names.join(',')},"n${again}":0}`)).toBe(`/n${again}: this member name is there twice`);
    }
  });
  it('are refused exactly when JSON.parse would silently drop a member (property)', () => {
    const member = fc.tuple(
      fc.constantFrom('a', 'b', 'c', 'dd', 'e1', 'f', 'g', '\\u0061'),
      fc.constantFrom('1', '[]', '{"a":1}'),
    );
    fc.assert(
      fc.property(fc.array(member, { maxLength: 20 }), (members) => {
        const text = `{${members.map(([name, any]) => `"${name}":${any}`).join(',')}}`;
        expect(parseStrictJson(text).ok).toBe(Object.keys(JSON.parse(text)).length === members.length);
      }),
    );
  });
});

describe('the limit of members', () => {
  it('counts members in all objects together', () => {
    const text = '{"a":{"b":[{"c":1},{"c":2}]}}';
    expect(value(text, { maxMembers: 4 })).toEqual(JSON.parse(text));
    expect(error(text, { maxMembers: 3 })).toBe('offset 20: its objects have too many members');
  });
});

describe('the limit of values', () => {
  it('counts values of all kinds at any depth', () => {
    const text = '{"a":[1,"x",null,{"b":[]}],"c":true}';
    expect(value(text, { maxValues: 8 })).toEqual(JSON.parse(text));
    expect(error(text, { maxValues: 7 })).toBe('offset 31: it has too many values');
  });
});

describe('BD-05 NUL', () => {
  it('is refused outside of the members that may contain it', () => {
    const limits = { nulAllowedIn: ['data'] };
    expect(value('{"data":{"a\\u0000":["\\u0000"]},"b":1}', limits)).toEqual({ data: { 'a\0': ['\0'] }, b: 1 });
    expect(error('{"data":{},"reason":"x\\u0000"}', limits)).toBe('/reason: \\u0000 is not allowed here');
    expect(error('{"data":{},"\\u0000":1}', limits)).toBe('/data: \\u0000 is not allowed here');
    expect(error('{"headers":{"data":"\\u0000"}}', limits)).toBe('/headers/data: \\u0000 is not allowed here');
    expect(error('{"data":"\\u0000"}')).toBe('/data: \\u0000 is not allowed here');
    expect(error('["\\u0000"]', limits)).toBe('/0: \\u0000 is not allowed here');
    expect(error('{"a":"\0"}', { nulAllowedIn: ['a'] })).toBe('offset 6: a control character in a string');
  });
});

describe('BD-06 lone surrogates', () => {
  it.each([
    '\\ud800',
    '\\udc00',
    '\\udc00\\ud800',
    'x\\ud83d',
    '\\ud83d\\n',
    '\\ud83dx',
    '\\ud83d\\u0041',
    '\\uD83D\\uD83D\\uDE00',
  ])('"%s" is refused in a value and in a name', (text) => {
    expect(error(`{"a":"${text}"}`)).toMatch(/^\/a: a lone surrogate \(offset \d+\)$/);
    expect(error(`{"${text}":1}`)).toMatch(/a lone surrogate/);
  });
  it('are refused unescaped, too; surrogate pairs are accepted', () => {
    expect(error('"\ud800"')).toBe('the text holds a lone surrogate; send well-formed UTF-8');
    expect(value('"\\uD83D\\uDE00"')).toBe('😀');
  });
  it('every string in an accepted text is well-formed (property)', () => {
    const unit = fc.constantFrom('\\ud83d', '\\ude00', 'a', '\\n', '😀', '\\u0041');
    fc.assert(
      fc.property(fc.array(unit, { maxLength: 8 }), (units) => {
        const text = `"${units.join('')}"`;
        expect(parseStrictJson(text).ok).toBe((JSON.parse(text) as string).isWellFormed());
      }),
    );
  });
});

describe('places in error messages', () => {
  it('an offset for invalid grammar', () => {
    for (const [text, reason] of [
      ['', 'offset 0: the text ends too early'],
      ['{"a":1', 'offset 6: the text ends too early'],
      ['{"a":1,}', 'offset 7: expected a member name in double quotes'],
      ['[1,]', 'offset 3: expected a value'],
      ['[1 2]', 'offset 3: expected "," or "]"'],
      ['{"a" 1}', 'offset 5: expected ":"'],
      ['1 1', 'offset 2: something follows the value'],
      ['"abc', 'offset 4: the string has no end'],
      ['"\\', 'offset 1: an unknown escape'],
      ['[01]', 'offset 1: not a JSON number'],
      ['[1.]', 'offset 1: not a JSON number'],
      ['tru', 'offset 0: expected a value'],
      ['{"a":1]', 'offset 6: expected "," or "}"'],
      ['\ufeff{}', 'offset 0: a byte order mark, which JSON does not have'],
    ]) {
      expect(error(text as string), text).toBe(reason);
    }
  });
});
