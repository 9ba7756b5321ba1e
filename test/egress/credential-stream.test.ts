import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { type CredentialSearch, StreamedCredential } from '../../broker/egress/credential-search/stream.ts';
import { sized } from '../world/runner/thorough.ts';

const SECRET = 'sk/Ab+c=d&e~f*g!h"i<jQ9zz==';

const credential = (secret: string, basic = false) => new StreamedCredential(new Secret(secret), { basic });

/** Feeds the text in pieces of these sizes, repeated in turn. */
function feed(search: CredentialSearch, text: Buffer, sizes: readonly number[]): Buffer {
  const out: Buffer[] = [];
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const next = at + (sizes[turn % sizes.length] ?? text.length);
    out.push(search.push(Buffer.from(text.subarray(at, next))));
    at = next;
  }
  out.push(search.end());
  return Buffer.concat(out);
}

const masked = (secret: string, text: string, sizes: number[] = [text.length]) =>
  feed(credential(secret).search({ mask: true }), Buffer.from(text), sizes).toString();

describe('the forms of a credential are found', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  test.each([
    ['raw', SECRET],
    ['percent-encoded', encodeURIComponent(SECRET)],
    ['percent-encoded as Python does, which keeps slashes', 'sk/Ab%2Bc%3Dd%26e~f%2Ag%21h%22i%3CjQ9zz%3D%3D'],
    ['percent-encoded in small letters', encodeURIComponent(SECRET).replace(/%../g, (code) => code.toLowerCase())],
    ['percent-encoded as a whole', [...Buffer.from(SECRET)].map((byte) => `%${byte.toString(16)}`).join('')],
    ['JSON', JSON.stringify(SECRET).slice(1, -1)],
    ['JSON of PHP, which escapes slashes', JSON.stringify(SECRET).slice(1, -1).replaceAll('/', '\\/')],
    ['JSON in ASCII by number', SECRET.replace(/[^\w]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)],
    ['hexadecimal', Buffer.from(SECRET).toString('hex')],
    ['hexadecimal in capitals', Buffer.from(SECRET).toString('hex').toUpperCase()],
  ])('%s', (_what, form) => {
    expect(masked(SECRET, `[${form}]`)).toBe(`[${'*'.repeat(form.length)}]`);
    expect(masked(SECRET, `[${form}]`, [1])).toBe(`[${'*'.repeat(form.length)}]`);
  });

  test.each(['', 'a', 'ab', 'abc', 'abcd'])('base64 after "%s"', (before) => {
    for (const encoding of ['base64', 'base64url'] as const) {
      const form = Buffer.from(`${before}${SECRET} and more`).toString(encoding);
      const search = credential(SECRET).search({ mask: true });
      const out = feed(search, Buffer.from(form), [3]);
      expect(search.found).toBe(true);
      expect(Buffer.from(out.toString(), 'base64').includes(SECRET.slice(2, -2))).toBe(false);
      expect(out.length).toBe(form.length);
    }
  });

  test.each(['\n', '\r\n', '\\n', '\\r\\n', '\n  ', ' '])('base64 in lines that end in %j', (end) => {
    for (let before = 0; before < 80; before++) {
      const lines = base64(`${'x'.repeat(before)}${SECRET}`).replace(/(.{60})/g, `$1${end}`);
      const search = credential(SECRET).search({ mask: true });
      const out = feed(search, Buffer.from(lines), [7, 64, 1]).toString();
      expect(search.found, lines).toBe(true);
      expect(out.length).toBe(lines.length);
    }
  });

  test('the password alone of "user:password"', () => {
    const search = credential('somebody:open-sesame-1', true).search({ mask: true });
    expect(feed(search, Buffer.from('it is open-sesame-1.'), [4]).toString()).toBe('it is *************.');
  });

  test('only the literal form is searched for in compressed data', () => {
    const hex = Buffer.from(SECRET).toString('hex');
    const search = credential(SECRET).search({ mask: true, forms: 'raw' });
    expect(feed(search, Buffer.from(`${hex} ${SECRET}`), [5]).toString()).toBe(`${hex} ${'*'.repeat(SECRET.length)}`);
  });

  test('short credentials, and parts of a credential, are not found', () => {
    expect(masked('seven77', 'seven77')).toBe('seven77');
    expect(masked(SECRET, SECRET.slice(1))).toBe(SECRET.slice(1));
    expect(masked(SECRET, SECRET.slice(0, -1))).toBe(SECRET.slice(0, -1));
  });

  test('overlapping matches are masked completely', () => {
    expect(masked('abcabcabcabc', '-abcabcabcabcabc-', [4])).toBe('-***************-');
  });

  test('the prepared credential cannot be printed or serialised', async () => {
    const { inspect } = await import('node:util');
    const one = credential(SECRET);
    one.search({ mask: true }).push(Buffer.from(SECRET.slice(0, 5)));
    for (const text of [inspect(one, { showHidden: true, depth: 9 }), JSON.stringify(one), String(one)])
      expect(text).not.toContain('sk/A');
  });
});

describe('bytes that are held back', () => {
  const held = (...pieces: string[]) => {
    const search = credential(SECRET).search({ mask: true });
    let sent = 0;
    for (const piece of pieces) sent += search.push(Buffer.from(piece)).length;
    return pieces.join('').length - sent;
  };

  test('are only those that may begin a form', () => {
    expect(held('nothing of it')).toBe(0);
    expect(held('a task: sk/Ab%2')).toBe(7);
    expect(held('a task: sk/Ab%2', 'C')).toBe(0);
    expect(held('a task: sk')).toBe(2);
  });

  test('never delay a server-sent event, whatever its last letter', () => {
    for (let code = 0x20; code < 0x7f; code++)
      for (const end of ['\n\n', '\r\n\r\n', '\r\r'])
        expect(held(`data: a text ends in ${String.fromCharCode(code)}${end}`), `${code}`).toBe(0);
  });

  test('without a mask nothing is passed on from the first byte of the credential', () => {
    const search = credential(SECRET).search({ mask: false });
    expect(search.push(Buffer.from('ab')).toString()).toBe('ab');
    expect(search.push(Buffer.from(`cd ${SECRET.slice(0, 9)}`)).toString()).toBe('cd ');
    expect(search.push(Buffer.from(`${SECRET.slice(9)} more`)).toString()).toBe('');
    expect(search.found).toBe(true);
  });

  test('do not include endless white space', () => {
    const start = Buffer.from(SECRET).toString('base64').slice(0, 20);
    const search = credential(SECRET).search({ mask: true });
    let sent = search.push(Buffer.from(start)).length;
    for (let i = 0; i < 100; i++) sent += search.push(Buffer.from(' ')).length;
    expect(sent).toBe(start.length + 100);
  });
});

/** A reference implementation: regular expressions of the forms, tried at every position of the whole text. */
function oracle(secret: string, text: Buffer): Buffer {
  const subject = text.toString('latin1');
  const out = Buffer.from(text);
  // `\\u0075` may be an escaped backslash and a `u`, or a backslash and an escaped `u`: which one matches depends on what is tried first.
  for (const form of [...expressions(secret, 'longest first'), ...expressions(secret, 'shortest first')]) {
    for (let at = 0; at < subject.length; at++) {
      form.lastIndex = at;
      const match = form.exec(subject);
      if (match === null || !hasLongLines(match)) continue;
      out.fill('*', at, at + match[0].length);
    }
  }
  return out;
}

/** At least seven characters are between two gaps of a match. Gaps are the groups, one before each character but the first. */
function hasLongLines(match: RegExpExecArray): boolean {
  const gaps = match.slice(1).flatMap((gap, at) => (gap ? [{ at, length: gap.length }] : []));
  return gaps.every(({ at, length }, i) => length <= 32 && (i === 0 || at - gaps[i - 1]!.at >= 7));
}

function expressions(secret: string, order: 'longest first' | 'shortest first'): RegExp[] {
  const quote = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
  const anyOf = (texts: string[]) =>
    `(?:${texts
      .toSorted((a, b) => (order === 'longest first' ? b.length - a.length : a.length - b.length))
      .map(quote)
      .join('|')})`;
  const hex = (byte: number) => byte.toString(16).padStart(2, '0');
  const upper = (byte: number) => hex(byte).toUpperCase();
  const letters = [...secret].map((letter) => {
    const code = letter.charCodeAt(0);
    const short = JSON.stringify(letter).slice(1, -1);
    const all = [letter, `%${hex(code)}`, `%${upper(code)}`, `\\u00${hex(code)}`, `\\u00${upper(code)}`];
    return anyOf([
      ...all,
      ...(short.length === 2 ? [short] : []),
      ...(letter === '/' ? ['\\/'] : []),
      ...(letter === ' ' ? ['+'] : []),
    ]);
  });
  const digits = [...Buffer.from(secret).toString('hex')].map((digit) => `[${digit}${digit.toUpperCase()}]`);
  const across = secret.replaceAll(/\s/g, '').length >= 16;
  const eol = String.raw`(?:\r\n|\r|\n|\\r\\n|\\r|\\n)`;
  const gap = across ? String.raw`([ \t]*${eol}?[ \t]*)` : '()';
  const groups = [0, 1, 2].map((shift) => {
    // Text that is the same in any context.
    const around = (before: string, after: string) =>
      Buffer.concat([
        Buffer.from(before.repeat(shift), 'latin1'),
        Buffer.from(secret),
        Buffer.from(after.repeat(3), 'latin1'),
      ]);
    const texts = [around('\x00', '\x00'), around('\xff', '\xff')].map((bytes) => bytes.toString('base64'));
    const length = Math.ceil(((shift + secret.length) * 8) / 6);
    const common = [...texts[0]!.slice(0, length)].filter((char, at) => char === texts[1]![at]).join('');
    const places = [...common].map((char) =>
      char === '+'
        ? anyOf(['+', '-', '%2B', '%2b', '\\u002B', '\\u002b'])
        : char === '/'
          ? anyOf(['/', '_', '%2F', '%2f', '\\/', '\\u002F', '\\u002f'])
          : char,
    );
    return places.join(gap);
  });
  return [letters.join(''), digits.join(''), ...groups].map((source) => new RegExp(source, 'y'));
}

describe('any text in any pieces', () => {
  const secrets = fc.string({
    minLength: 8,
    maxLength: 30,
    unit: fc.constantFrom(...'abAB09%2f5\\u/+= n"&'),
  });
  /** Forms of the secret, complete and partial, among other text. */
  const texts = (secret: string) => {
    const bytes = Buffer.from(secret);
    const lines = (text: string, width: number, end: string) =>
      text.replace(new RegExp(`(.{${width}})`, 'g'), `$1${end}`);
    const embedded = fc
      .tuple(
        fc.string({ maxLength: 4 }),
        fc.integer({ min: 4, max: 20 }),
        fc.constantFrom('', '\n', '\r\n', '\\n', ' ', '\n\n', '\r', ' '.repeat(33), ' '.repeat(31)),
      )
      .map(([before, width, end]) => lines(Buffer.from(`${before}${secret}..`).toString('base64'), width, end));
    const mixed = fc
      .array(fc.constantFrom(0, 1, 2, 3), { minLength: secret.length, maxLength: secret.length })
      .map((choices) =>
        [...secret]
          .map((letter, at) => {
            const hex = letter.charCodeAt(0).toString(16).padStart(2, '0');
            return [letter, `%${hex}`, `\\u00${hex}`, JSON.stringify(letter).slice(1, -1)][choices[at]!];
          })
          .join(''),
      );
    const form = fc.oneof(
      fc.constant(secret),
      fc.constant(bytes.toString('hex')),
      fc.constant(bytes.toString('hex').toUpperCase()),
      fc.constant(encodeURIComponent(secret)),
      fc.constant(bytes.toString('base64url')),
      mixed,
      embedded,
    );
    const part = fc.tuple(form, fc.nat(40), fc.nat(40)).map(([text, from, to]) => text.slice(from, from + to));
    const noise = fc.string({ maxLength: 12, unit: fc.constantFrom(...'abAB09%2f5\\u/+= \n"') });
    return fc
      .array(fc.oneof(form, part, noise), { maxLength: 8 })
      .map((pieces) => Buffer.from(pieces.join(''), 'latin1'));
  };
  const cases = secrets.chain((secret) =>
    fc.tuple(
      fc.constant(secret),
      texts(secret),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 9 }),
    ),
  );

  test('gives the result of the whole text and of an independent search', () => {
    fc.assert(
      fc.property(cases, ([secret, text, sizes]) => {
        const expected = oracle(secret, text).toString('latin1');
        const forms = credential(secret);
        expect(feed(forms.search({ mask: true }), text, [text.length || 1]).toString('latin1')).toBe(expected);
        expect(feed(forms.search({ mask: true }), text, sizes).toString('latin1')).toBe(expected);
      }),
      { numRuns: sized(150, 400) },
    );
  });

  test('a backslash and an escape that can be read in two ways are masked completely', () => {
    const [secret, text] = ['a f%90+/ a\\u', Buffer.from('a f%90+/ a\\\\u0075')];
    for (const sizes of [[text.length], [1]])
      expect(feed(credential(secret).search({ mask: true }), text, sizes).toString()).toBe('*'.repeat(text.length));
    expect(oracle(secret, text).toString()).toBe('*'.repeat(text.length));
  });

  test('gives the same for the literal form', () => {
    fc.assert(
      fc.property(cases, ([secret, text, sizes]) => {
        const subject = text.toString('latin1');
        const expected = Buffer.from(text);
        for (let at = 0; at < subject.length; at++)
          if (subject.startsWith(secret, at)) expected.fill('*', at, at + secret.length);
        const search = credential(secret).search({ mask: true, forms: 'raw' });
        expect(feed(search, text, sizes).toString('latin1')).toBe(expected.toString('latin1'));
        expect(search.found).toBe(subject.includes(secret));
      }),
      { numRuns: sized(150, 400) },
    );
  });

  test('without a mask no part of a credential is passed on', () => {
    fc.assert(
      fc.property(cases, ([secret, text, sizes]) => {
        const found = oracle(secret, text).findIndex((byte, at) => byte !== text[at]);
        const search = credential(secret).search({ mask: false });
        const out = feed(search, text, sizes);
        // A credential of asterisks would be equal to its mask.
        expect(search.found).toBe(found !== -1);
        expect(out.equals(text.subarray(0, out.length))).toBe(true);
        expect(out.length).toBeLessThanOrEqual(found === -1 ? text.length : found);
      }),
      { numRuns: sized(80, 200) },
    );
  });
});
