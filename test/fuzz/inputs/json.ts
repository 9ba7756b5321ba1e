/**
 * JSON texts, valid and damaged: nothing is accepted that JSON.parse rejects, and values are the same. Of valid texts exactly those are rejected
 * that two parsers may read differently, as determined by an independent scanner.
 */
import fc from 'fast-check';
import { visit } from 'jsonc-parser';
import { expect } from 'vitest';
import { parseStrictJson } from '../../../json/strict.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const MAX_LEVELS = 64;

const digits = fc.stringMatching(/^-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?$/);
const number = fc.oneof(
  digits,
  fc.double().map((n) => String(n)),
  fc.constantFrom('-0', '1e999', '0e999', '9007199254740993', '01', '1.', '.5', '+1', '0x1', '5e-324', '2e-324'),
);
const unit = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('a', 'b', 'é', '😀', '\u2028', '__proto__') },
  fc.constantFrom(
    '\\n',
    '\\u0061',
    '\\u0000',
    '\\ud83d\\ude00',
    '\\ud83d',
    '\\uDE00',
    '\\x',
    '\\',
    '\t',
    '\0',
    '\ud800',
  ),
);
const string = fc.array(unit, { maxLength: 4 }).map((units) => `"${units.join('')}"`);
const space = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('', '', ' ', '\n', '\t\r') },
  fc.constantFrom('\u00a0', '\ufeff', '/**/'),
);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.oneof(string, number, fc.constantFrom('true', 'false', 'null', 'nul', 'NaN')),
    fc.tuple(space, fc.array(tie('value'), { maxLength: 4 })).map(([gap, all]) => `[${gap}${all.join(`${gap},`)}]`),
    fc
      .tuple(space, fc.array(fc.tuple(string, tie('value')), { maxLength: 5 }))
      .map(([gap, all]) => `{${all.map((member) => member.join(`${gap}:`)).join(`,${gap}`)}}`),
  ),
}));
const deep = fc
  .tuple(fc.integer({ min: 60, max: 68 }), fc.constantFrom('[]', '{"a":}'), fc.constantFrom('1', '', '[]'))
  .map(([levels, [open, ...close], core]) =>
    open === '['
      ? '['.repeat(levels) + core + ']'.repeat(levels)
      : '{"a":'.repeat(levels) + (core || '1') + close.at(-1)?.repeat(levels),
  );
const soup = fc
  .array(fc.constantFrom(...'{}[],:"\\ue19.-+tn \n', '"a"', '1', 'true', '{"a":1}', '\\u0041', '\0', '\ufeff'), {
    maxLength: 12,
  })
  .map((all) => all.join(''));
const text = fc
  .tuple(
    fc.oneof({ weight: 5, arbitrary: value }, deep, soup),
    fc.nat(200),
    fc.constantFrom('', '', '', ...'{}[],:"\\0e-\0 '),
  )
  .map(([whole, at, put]) => (put === '' ? whole : whole.slice(0, at) + put + whole.slice(at + (at % 2))));

/** Returns digits and exponent of a decimal, so that equal numbers have equal texts. */
function decimal(written: string): string {
  const [, sign = '', whole = '', rest = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(written) ?? [];
  const all = (whole + rest).replace(/^0+/, '');
  const bare = all.replace(/0+$/, '');
  return bare === '' ? '0' : `${sign}${bare}e${Number(exponent) - rest.length + all.length - bare.length}`;
}

/** Whether two parsers may differ about a valid JSON text. */
function isDoubtful(text: string): boolean {
  let isSure = text.isWellFormed();
  let level = 0;
  const names: Set<string>[] = [];
  const begin = () => {
    names.push(new Set());
    if (++level > MAX_LEVELS) isSure = false;
  };
  const end = () => {
    names.pop();
    level--;
  };
  const check = (any: unknown) => {
    if (typeof any === 'string' && (!any.isWellFormed() || any.includes('\0'))) isSure = false;
  };
  visit(text, {
    onObjectBegin: begin,
    onArrayBegin: begin,
    onObjectEnd: end,
    onArrayEnd: end,
    onObjectProperty: (name) => {
      check(name);
      if (names.at(-1)?.has(name)) isSure = false;
      names.at(-1)?.add(name);
    },
    onLiteralValue: (any, offset, length) => {
      check(any);
      if (typeof any !== 'number') return;
      if (!Number.isFinite(any) || decimal(text.slice(offset, offset + length)) !== decimal(JSON.stringify(any)))
        isSure = false;
    },
  });
  return !isSure;
}

export function json(count: Count): Fuzzed {
  const property = fc.property(text, (written) => {
    let plain: { value: unknown } | undefined;
    try {
      plain = { value: JSON.parse(written) };
    } catch {
      plain = undefined;
    }
    const strict = parseStrictJson(written);
    count(strict.ok ? 'accepted' : plain ? 'refused as ambiguous' : 'refused');
    expect(strict.ok).toBe(plain !== undefined && !isDoubtful(written));
    if (strict.ok) expect({ value: strict.value }).toEqual(plain);
  });
  return { property, reaches: ['accepted', 'refused', 'refused as ambiguous'] };
}
