/** Values that imitate other parts of a sentence, or hide something. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../broker/policy/facts.ts';
import { MAX_SENTENCE, plainSentence } from '../../broker/sentences/part.ts';
import { sentenceOf, sentenceOfPath } from '../../broker/sentences/sentences.ts';
import { callOf, platformOf, said } from './describe-call.ts';

const platform = platformOf({
  sentences: {
    'POST /a': 'post **{/a}**: *{/b}*',
    'POST /repos/*/*': 'change **{1}/{2}**',
    'POST /all': 'do **{/a/*}** [*{/b}*|{/c}] {amount /d /e} {count /f} **{recipients}** {subject /h} {?q}',
  },
  recipients: { 'POST /all': ['/to', '/cc/*'] },
});

test.each<[string, JsonObject, string]>([
  ['markup stays text', { a: '<b>x</b>', b: '**y** [z](http://e)' }, 'post “<b>x</b>”: “**y** [z](http://e)”'],
  ['a line break', { a: 'x\ny', b: 'z' }, 'post “x⟦U+000A⟧y”: “z”'],
  ['a direction override', { a: 'x\u202egpj', b: 'z' }, 'post “x⟦U+202E⟧gpj”: “z”'],
  ['a zero-width space', { a: 'ac\u200bme', b: 'z' }, 'post “ac⟦U+200B⟧me”: “z”'],
  [
    'two alphabets in a word',
    { a: 'аcme', b: 'pаypal' },
    'post аcme (“аcme” mixes Latin and Cyrillic letters): “pаypal” (“pаypal” mixes Latin and Cyrillic letters)',
  ],
  ['a name all in another alphabet', { a: 'асе', b: 'Ошибка' }, 'post асе (Cyrillic letters): “Ошибка”'],
  [
    'a domain in another alphabet',
    { a: 'x@аpple.example', b: 'z' },
    'post x@аpple.example (“аpple” mixes Latin and Cyrillic letters; its domain is xn--pple-43d.example): “z”',
  ],
  [
    'words of the sentence',
    { a: 'acme/shop and 0 other fields', b: 'x” and 3 other fields' },
    'post “acme/shop and 0 other fields”: “x⟦U+201D⟧ and 3 other fields”',
  ],
  ['a note of its own', { a: 'x (checked)', b: 'z' }, 'post “x (checked)”: “z”'],
  ['a list for a text', { a: ['x', 'y'], b: 'z' }, 'post (a list of 2): “z”'],
  [
    'an object for a text',
    { a: { x: 1 }, b: { y: [1], z: 2 } },
    'post (an object of 1 member): (an object of 2 members)',
  ],
  ['nothing', { b: null }, 'post (not given): (not given) with 1 field'],
  [
    'the same name in another spelling',
    { a: 'x', A: 'y', b: 'z' },
    'post x (given in another spelling as well): “z” and 1 other field',
  ],
  ['no own member', { b: 'z' }, 'post (not given): “z”'],
  ['blanks', { a: `x${' '.repeat(100)}y`, b: 'z' }, 'post “x⟦100 spaces⟧y”: “z”'],
  ['marks', { a: `x${'\u0301'.repeat(100)}`, b: 'z' }, `post “x${'\u0301'.repeat(3)}⟦more marks⟧”: “z”`],
  [
    'numbers',
    { a: Number('1e309'), b: Number('12345678901234567890') },
    'post “a number that is too large”: “12345678901234567000” (not exact)',
  ],
])('%s', (_what, body, expected) => {
  expect(said(platform, 'POST /a', body)).toBe(expected);
});

test('a long value is truncated, and its length is shown', () => {
  const text = said(platform, 'POST /a', { a: 'x'.repeat(10_000), b: '\u200b'.repeat(10_000) });
  expect(text).toContain(`“${'x'.repeat(120)}…” (the beginning of 10,000 characters)`);
  expect(text.length).toBeLessThan(700);
  expect(text.replaceAll(/⟦U\+[0-9A-F]+⟧/g, '')).not.toMatch(/[⟦⟧]/);
});

test.each([
  ['POST /repos/acme/shop', 'change acme/shop'],
  ['POST /repos/acme%2Fevil/shop', 'change acme%2Fevil/shop'],
  ['POST /repos/acme%20and%200/shop', 'change “acme and 0/shop”'],
  ['POST /repos/%E2%80%AEacme/shop', 'change “⟦U+202E⟧acme/shop”'],
  ['POST /repos/%D0%B0cme/shop', 'change аcme/shop (“аcme” mixes Latin and Cyrillic letters)'],
  ['POST /repos/%FF/shop', 'change %FF/shop'],
])('%s: %s', (operation, expected) => {
  expect(said(platform, operation)).toBe(expected);
});

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\u2800]/u;
const unseen = fc.constantFrom(
  '\u202e',
  '\u200b',
  '\u0000',
  '\n',
  '\ufeff',
  '\u2066',
  '\ud800',
  '\u{e0001}',
  '\u3164',
  '“',
  '”',
  ' '.repeat(9),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.array(fc.oneof(unseen, fc.string()), { maxLength: 300 }).map((parts) => parts.join('')),
);
const value: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    text,
    fc.double(),
    fc.constantFrom(null, true, -0, Number('1e309')),
    fc.array(tie('value'), { maxLength: 6 }),
    fc.dictionary(fc.oneof(text, fc.constantFrom('a', 'b', 'j', 'raw')), tie('value'), { maxKeys: 6 }),
  ),
})).value;
const body = fc.dictionary(fc.constantFrom(...'abcdefhi', 'A', 'to', 'cc', 'x'), value) as fc.Arbitrary<JsonObject>;

test('a sentence has no invisible characters and a bounded length, for any call', () => {
  fc.assert(
    fc.property(
      fc.constantFrom('/a', '/all', '/repos/x/y', '/other'),
      body,
      fc.webQueryParameters(),
      (path, data, query) => {
        const call = { ...callOf(`POST ${path}`, data), query };
        const sentence = sentenceOf(platform, call);
        const plain = plainSentence(sentence);
        expect(plain).not.toMatch(UNSEEN);
        expect(plain.length).toBeLessThanOrEqual(MAX_SENTENCE);
        expect(JSON.stringify(sentence).length).toBeLessThan(4 * MAX_SENTENCE);
        for (const part of sentence.parts)
          if ('value' in part && part.quoted) expect(part.value).not.toMatch(/[“”]/);
          else if ('value' in part) expect(part.value).not.toMatch(/^[^,.]*[\s“”()]/);
      },
    ),
    { numRuns: 500 },
  );
});

test('a sentence from a path alone has no invisible characters and a bounded length', () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 2, maxLength: 2 }), (segments) => {
      const path = `/repos/${segments.map((one) => encodeURIComponent(one.toWellFormed()) || 'x').join('/')}`;
      const plain = plainSentence(sentenceOfPath(platform, { method: 'POST', path }));
      expect(plain).not.toMatch(UNSEEN);
      expect(plain.length).toBeLessThanOrEqual(MAX_SENTENCE);
    }),
  );
});

test('the number of fields that the sentence does not mention is exact', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.stringMatching(/^x[a-z0-9]{1,8}$/), { maxLength: 30 }), value, (names, one) => {
      const more = Object.fromEntries(names.map((name) => [name, one]));
      const left = names.length === 0 ? '' : ` and ${names.length} other field${names.length === 1 ? '' : 's'}`;
      expect(said(platform, 'POST /a', { a: 'x', b: 'z', ...more })).toBe(`post x: “z”${left}`);
    }),
  );
});
