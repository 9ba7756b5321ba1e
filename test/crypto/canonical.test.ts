import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalJson,
  createMembersCanonicalizer,
  sha256Base64url,
  sha256Hex,
} from '../../broker/crypto/canonical.ts';

describe('canonical JSON', () => {
  it('matches the examples of RFC 8785 sections 3.2.2 and 3.2.3', () => {
    const value = JSON.parse(`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`);
    expect(canonicalJson(value)).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    const sorting = {
      '\u20ac': 'Euro',
      '\r': 'CR',
      '\ufb33': 'Dalet',
      '1': 'One',
      '\ud83d\ude00': 'Smile',
      '\u0080': 'C',
      ö: 'o',
    };
    expect(Object.values(JSON.parse(canonicalJson(sorting)))).toEqual([
      'One',
      'CR',
      'C',
      'o',
      'Euro',
      'Smile',
      'Dalet',
    ]);
  });

  it('does not depend on the order of members', () => {
    expect(canonicalJson({ b: { d: 1, c: 2 }, a: [] })).toBe(canonicalJson({ a: [], b: { c: 2, d: 1 } }));
  });

  it('throws for values without a canonical form', () => {
    for (const value of [
      undefined,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      'a\ud800',
      { x: '\udc00' },
      { '\ud800': 1 },
    ]) {
      expect(() => canonicalJson(value)).toThrow();
    }
  });
});

describe('the canonicalizer for members of flat rows', () => {
  const names = ['id', 'seq', 'path', 'ünï', 'a"b', '10', '9', '\ud83d\ude00', '\ufb33', 'optional'];
  const rowJson = createMembersCanonicalizer(names);
  const flat = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.double(),
    fc.maxSafeInteger(),
    fc.boolean(),
    fc.constant(null),
    fc.constant(undefined),
  );
  const row = (value: fc.Arbitrary<unknown>, others: fc.Arbitrary<string>) =>
    fc.dictionary(fc.oneof(fc.constantFrom(...names), others), value, { noNullPrototype: true });

  function both(value: Record<string, unknown>): [unknown, unknown] {
    const attempt = (encode: () => string) => {
      try {
        return encode();
      } catch {
        return 'refused';
      }
    };
    const picked = Object.fromEntries(names.map((name) => [name, value[name]]));
    return [attempt(() => rowJson(value)), attempt(() => canonicalJson(picked))];
  }

  it('equals canonicalJson on rows with its names', () => {
    fc.assert(
      fc.property(row(flat, fc.constantFrom(...names)), (value) => {
        const [fast, general] = both(value);
        expect(fast).toBe(general);
      }),
      { numRuns: 1000 },
    );
  });

  it('equals canonicalJson on rows with other names, nested values, dates and lone surrogates', () => {
    const anything = fc.oneof(
      flat,
      fc.anything({ withDate: true, maxDepth: 2 }),
      fc.string({ unit: 'binary' }),
      fc.constant('\ud800'),
    );
    fc.assert(
      fc.property(row(anything, fc.string()), (value) => {
        const [fast, general] = both(value);
        expect(fast).toBe(general);
      }),
      { numRuns: 1000 },
    );
  });

  it('includes only members with its names', () => {
    expect(rowJson({ id: 'a', extra: 1, seq: 2 })).toBe('{"id":"a","seq":2}');
    expect(rowJson({ id: 'a', toJSON: () => 'lie' })).toBe('{"id":"a"}');
    expect(rowJson({})).toBe('{}');
  });

  it('refuses names of inherited members, toJSON and lone surrogates', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'toJSON', '\ud800']) {
      expect(() => createMembersCanonicalizer(['id', name])).toThrow('cannot have a member');
    }
  });
});

describe('SHA-256', () => {
  it('of a text is that of its UTF-8 bytes', () => {
    const expected = createHash('sha256').update('grün').digest();
    expect(sha256Hex('grün')).toBe(expected.toString('hex'));
    expect(sha256Base64url(Buffer.from('grün'))).toBe(expected.toString('base64url'));
  });
});
