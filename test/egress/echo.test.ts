/** An echoed credential is found in any encoding that it got on its way through the platform. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { readAnswer } from '../../broker/egress/answers/answer.ts';
import { makeCredentialPatterns } from '../../broker/egress/credential-search/patterns.ts';
import { publicJson } from '../world/public-json.ts';
import { sized } from '../world/runner/thorough.ts';

/** Contains characters that encodings treat differently. */
const SECRET = 'sk/Ab+c=d&e~f*g!h"i<jQ9zz==';
const PLAIN = 'CANARY7f3a9bcdef0123456789';
const patternsOf = (secret: string, basic = false) => makeCredentialPatterns(new Secret(secret), { basic });
const PATTERNS = new Map([SECRET, PLAIN].map((secret) => [secret, patternsOf(secret)]));

const read = (body: string | Buffer, type: string, secret = SECRET, headers: object = {}, status = 200) =>
  readAnswer(
    { status, headers: { 'content-type': type, ...headers }, body: Buffer.from(body) },
    PATTERNS.get(secret) ?? patternsOf(secret),
  );

const base64 = (text: string) => Buffer.from(text).toString('base64');
const html = (text: string, special: RegExp) =>
  text.replace(
    special,
    (char) =>
      ({ '&': '&amp;', '<': '&lt;', '"': '&quot;' })[char] ?? `&#x${char.charCodeAt(0).toString(16).toUpperCase()};`,
  );

const PYTHON = encodeURIComponent(SECRET).replaceAll('%2F', '/');
const ENCODED: [string, string, string][] = [
  ['by urllib.parse.quote', `q ${PYTHON}`, 'text/plain'],
  ['by urllib.parse.quote, in JSON', JSON.stringify({ a: `/x/${PYTHON}` }), 'application/json'],
  ['by URLSearchParams', new URLSearchParams({ a: SECRET }).toString(), 'text/plain'],
  ['by rawurlencode', PYTHON.replaceAll('/', '%2F').replaceAll('*', '%2A').replaceAll('!', '%21'), 'text/plain'],
  [
    'by URLEncoder',
    new URLSearchParams({ a: SECRET }).toString().replaceAll('%7E', '~').replaceAll('!', '%21'),
    'text/plain',
  ],
  ['with some characters percent-encoded', SECRET.replaceAll('b', '%62').replaceAll('"', '%22'), 'text/plain'],
  ['twice percent-encoded', encodeURIComponent(encodeURIComponent(SECRET)), 'text/plain'],
  ['three times percent-encoded', encodeURIComponent(encodeURIComponent(encodeURIComponent(SECRET))), 'text/plain'],
  ['for HTML', `<p>${html(SECRET, /[&<"]/g)}</p>`, 'text/html'],
  ['by Mustache', `<p>${html(SECRET, /[&<"/=`]/g)}</p>`, 'text/html'],
  [
    'with named entities',
    SECRET.replaceAll('/', '&sol;').replaceAll('=', '&equals;').replaceAll('!', '&excl;'),
    'text/xml',
  ],
  ['with decimal references', [...SECRET].map((char) => `&#${char.charCodeAt(0)};`).join(''), 'text/xml'],
  ['for HTML, in JSON', JSON.stringify({ a: html(SECRET, /[&<"]/g) }), 'application/json'],
  [
    'for HTML, with the ampersands escaped in JSON',
    JSON.stringify({ a: html(SECRET, /[&<"]/g) }).replaceAll('&', '\\u0026'),
    'application/json',
  ],
  [
    'as JSON in JSON in JSON',
    JSON.stringify({ a: JSON.stringify({ b: JSON.stringify({ c: SECRET }) }) }),
    'application/json',
  ],
  ['by JavaScript', SECRET.replaceAll('/', '\\x2f').replaceAll('"', '\\x22'), 'text/javascript'],
  ['with braced code points', SECRET.replaceAll('/', '\\u{2f}').replaceAll('=', '\\u{00003d}'), 'text/javascript'],
  ['by a shell', SECRET.replace(/[^\w/=]/g, '\\$&'), 'text/plain'],
  ['base64 in lines', base64(`user and ${SECRET} and more of it`).replace(/.{20}/g, '$&\n'), 'text/plain'],
  [
    'base64 in lines, in JSON',
    JSON.stringify({ content: base64(`x${SECRET}`).replace(/.{20}/g, '$&\n') }),
    'application/json',
  ],
  [
    'base64 with its slashes escaped',
    JSON.stringify({ a: base64(`${SECRET}>>>???`) }).replaceAll('/', '\\/'),
    'application/json',
  ],
  ['base64, percent-encoded', encodeURIComponent(base64(`ab${SECRET}`)), 'text/plain'],
  ['hex in groups', Buffer.from(SECRET).toString('hex').replace(/.{8}/g, '$& '), 'text/plain'],
];

describe('an encoded credential is redacted in place', () => {
  it.each(ENCODED)('%s', (_, body, type) => {
    const around = type === 'application/json' ? body : `before ${body} behind`;
    const answer = read(around, type);
    if (answer.kind !== 'data') throw new Error(answer.kind);
    expect(answer.redacted, answer.data).toBe(true);
    expect(answer.data).toContain('[redacted]');
    if (type === 'application/json') expect(typeof JSON.parse(answer.data)).toBe('object');
    else expect(JSON.parse(answer.data)).toMatch(/^before .*(?<!zz)(?<!%3D)(?<!=) behind$/s);
    for (const part of ['Ab', 'c%3D', 'jQ9', base64('xxx/Ab+c=').slice(4, 8)]) expect(answer.data).not.toContain(part);
  });
  it('nothing else changes', () => {
    const body = `{"n":1.0, "a":"50% off &amp; \\u00e9 ${PYTHON}\\n", "z":"\\/"}`;
    expect(read(body, 'application/json')).toMatchObject({
      data: '{"n":1.0, "a":"50% off &amp; \\u00e9 [redacted]\\n", "z":"\\/"}',
    });
  });
  it('in characters of more than one byte', () => {
    const secret = 'pässwörd-😀-ключ-0123456789';
    for (const body of [
      secret,
      JSON.stringify(secret),
      encodeURIComponent(secret),
      `"${[...Array(secret.length).keys()].map((i) => `\\u${secret.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`,
    ])
      expect(read(body, 'text/plain', secret)).toMatchObject({ redacted: true });
    expect(
      read(Buffer.from('pässwörd-0123456789', 'latin1'), 'text/plain; charset=iso-8859-1', 'pässwörd-0123456789'),
    ).toMatchObject({
      data: '"[redacted]"',
    });
  });
  it('also when the credential itself contains something like an escape', () => {
    const secret = 'tok%41en-&lt;-\\u0041-0123456789';
    for (const body of [
      secret,
      JSON.stringify(secret),
      encodeURIComponent(secret),
      html(secret, /[&<"]/g),
      html(encodeURIComponent(secret), /%/g),
    ])
      expect(read(body, 'text/plain', secret), body).toMatchObject({ redacted: true });
  });
});

it('up to three layers of any escapes, inside and around base64, are decoded (property)', () => {
  const everyUnit = (text: string) =>
    [...text].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');
  const escapes: Record<string, (text: string) => string> = {
    json: (text) => JSON.stringify(text),
    units: everyUnit,
    percent: encodeURIComponent,
    form: (text) => new URLSearchParams({ a: text }).toString(),
    html: (text) => html(text, /[&<>"'/=`%\\]/g),
  };
  const layers = fc.array(fc.constantFrom(...Object.keys(escapes)), { maxLength: 3 });
  const wrap = (text: string, names: readonly string[]) => names.reduce((inner, name) => escapes[name]!(inner), text);
  const secret = fc
    .string({ unit: 'grapheme-ascii', minLength: 16, maxLength: 60 })
    .filter((text) => text.replaceAll(/\s/g, '').length >= 16);
  const around = fc.string({ maxLength: 12 });
  fc.assert(
    fc.property(secret, layers, fc.boolean(), layers, around, (value, inner, inBase64, outer, more) => {
      const escaped = wrap(`${more} ${value} ${more}`, inner);
      const body = inBase64 ? wrap(base64(escaped).replace(/.{76}/g, '$&\n'), outer) : escaped;
      const answer = readAnswer(
        { status: 200, headers: { 'content-type': 'text/plain' }, body: Buffer.from(body) },
        patternsOf(value),
      );
      expect(answer.kind === 'blocked' || answer.redacted, body).toBe(true);
    }),
    {
      numRuns: sized(250, 1_000),
      // Escapes in the credential itself, hidden by other layers; and white space between its characters.
      examples: [
        ['!!\\%00!!!!!!!!!!', ['json', 'json', 'json'], false, [], ''],
        ['00!   !!!!!!!!!!!"!', ['json'], false, [], '%'],
        ['%00!!!!!!!!!!\\!!', ['json'], false, [], ''],
        ['!!!!!!!!!\\!!!!%0', ['json'], true, [], '0'],
      ],
    },
  );
});

describe('a credential that cannot be mapped to its position is blocked', () => {
  it.each([
    ['base64 of base64', base64(base64(SECRET))],
    ['base64 of base64 in lines', base64(base64(`a long prefix ${SECRET}`).replace(/.{20}/g, '$&\n'))],
    ['base64 of base64 of base64', base64(base64(base64(SECRET)))],
    [
      'base64url of JSON that escapes it',
      Buffer.from(JSON.stringify({ a: html(SECRET, /[&<"/]/g) })).toString('base64url'),
    ],
    ['base64 of base64 after something that looks like base64', `data/of/${base64(base64(`Basic ${SECRET}`))}`],
    ['base64 of percent-encoded text', base64(`x=${encodeURIComponent(SECRET)}`)],
  ])('%s', (_, body) => {
    expect(read(JSON.stringify({ a: 1, body }), 'application/json')).toMatchObject({ kind: 'blocked' });
    expect(read(body, 'text/plain')).toMatchObject({ kind: 'blocked' });
  });
  it('in another charset', () => {
    const twice = base64(base64(SECRET));
    for (const charset of ['utf-16le', 'utf-16be'])
      for (const body of [Buffer.from(twice, 'utf16le'), Buffer.from(twice, 'utf16le').swap16(), Buffer.from(twice)])
        expect(read(body, `text/plain; charset=${charset}`), charset).toMatchObject({ kind: 'blocked' });
    expect(read(twice, 'text/plain; charset=shift_jis')).toMatchObject({ kind: 'blocked' });
  });
  it('in binary data, in any form', () => {
    for (const [name, body] of ENCODED)
      expect(read(Buffer.concat([Buffer.from([0x89, 0]), Buffer.from(body)]), 'image/png'), name).toMatchObject({
        kind: 'blocked',
      });
  });
});

describe('under any declared charset the credential is found', () => {
  it.each([
    'gbk',
    'gb18030',
    'big5',
    'shift_jis',
    'euc-kr',
    'euc-jp',
    'iso-2022-jp',
    'utf-8',
    'windows-1252',
    'nonsense',
  ])('%s', (charset) => {
    for (const lead of [0x81, 0x8f, 0xa1, 0xe0, 0xf0]) {
      const body = Buffer.concat([Buffer.from('a '), Buffer.from([lead]), Buffer.from(SECRET), Buffer.from(' z')]);
      const answer = read(body, `text/html; charset=${charset}`);
      if (answer.kind !== 'data') throw new Error(answer.kind);
      expect(answer.redacted).toBe(true);
      expect(answer.data).not.toContain(SECRET.slice(2, -4).replace('"', '\\"'));
    }
  });
});

describe('in headers', () => {
  const location = (text: string) => {
    const answer = read('', 'text/plain', SECRET, { location: text }, 302);
    return answer.kind === 'data' ? [answer.location, answer.redacted] : [];
  };
  it('the target of a redirect', () => {
    expect(location(`https://x.test/login/${PYTHON}/z?next=1`)).toEqual(['https://x.test/login/[redacted]/z', true]);
    expect(location(`https://x.test/${encodeURIComponent(encodeURIComponent(SECRET))}`)).toEqual([
      'https://x.test/[redacted]',
      true,
    ]);
    expect(location(`https://x.test/${base64(base64(SECRET))}`)).toEqual(['[redacted]', true]);
    expect(location('https://x.test/50%25/a&amp;b')).toEqual(['https://x.test/50%25/a&amp;b', false]);
  });
});

describe('base64 of longer data', () => {
  it.each([0, 1, 2])('neighbouring groups are redacted too, %i bytes before it', (before) => {
    // A character holds six bits: the first and last byte of the credential share characters with other bytes.
    const text = base64(`${'x'.repeat(3 + before)}${SECRET}yyy`);
    const { data } = read(text, 'text/plain') as { data: string };
    const kept = (JSON.parse(data) as string).split('[redacted]');
    expect(kept).toEqual([
      text.slice(0, Math.floor(((3 + before) * 8) / 6)),
      text.slice(Math.ceil(((3 + before + SECRET.length) * 8) / 6)),
    ]);
  });
  it.each([1, 2, 3])('binary neighbours, %i bytes before and after it, are decoded with the shared groups', (bytes) => {
    const around = Buffer.alloc(bytes, 0xff);
    const body = Buffer.concat([around, Buffer.from(encodeURIComponent(SECRET)), around]).toString('base64');
    expect(read(body, 'text/plain')).toMatchObject({ kind: 'blocked' });
  });
  it('padding is redacted too', () => {
    expect(read(`a ${base64(SECRET)} b`, 'text/plain')).toMatchObject({ data: '"a [redacted] b"' });
    expect(read(`a ${base64(`x${SECRET}`)} b`, 'text/plain')).toMatchObject({
      data: expect.stringMatching(/^"a [^ ]?\[redacted\] b"$/),
    });
  });
});

describe('short credentials', () => {
  it('are not searched for across white space, nor in decoded base64', () => {
    const short = 'abcdefgh1234567';
    for (const body of ['abcdefgh 1234567', base64(base64(`Basic ${short}`))])
      expect(read(body, 'text/plain', short)).toMatchObject({ kind: 'data', redacted: false });
    const long = `${short}8`;
    expect(read('abcdefgh 12345678', 'text/plain', long)).toMatchObject({ redacted: true });
    expect(read(base64(base64(`Basic ${long}`)), 'text/plain', long)).toMatchObject({ kind: 'blocked' });
  });
  it('are redacted in their usual encodings', () => {
    for (const body of ['p&amp;ss/wd1', 'p%26ss/wd1', '"p\\u0026ss\\/wd1"', base64('u:p&ss/wd1')])
      expect(read(body, 'text/plain', 'p&ss/wd1')).toMatchObject({ redacted: true });
  });
});

it('finds nothing in JSON of public APIs', () => {
  const patterns = [patternsOf(SECRET), patternsOf(`ann@up.test:${PLAIN}`, true), patternsOf('admin:changeme1', true)];
  for (const body of publicJson(1, sized(400_000, 2_000_000)))
    for (const one of patterns)
      expect(readAnswer({ status: 200, headers: { 'content-type': 'application/json' }, body }, one)).toMatchObject({
        kind: 'data',
        data: body.toString(),
        redacted: false,
      });
});

describe('takes time linear in the answer', () => {
  const MIB = sized(2, 10);
  const most = MIB * 1024 * 1024;
  it.each([
    ['\\n'],
    ['\\u0041'],
    ['%41'],
    ['%252541'],
    ['&'],
    ['&amp;amp;amp;'],
    ['&#'],
    ['\\u{'],
    ['%'],
    ['\\'],
    ['A'],
    ['V'],
    [' '],
    [base64('some text in base64 ')],
    [base64(base64(base64('some text in base64 %41')))],
    [SECRET.slice(0, -1)],
  ])(`${MIB} MiB of %s`, (piece) => {
    const time = (bytes: number) => {
      const body = Buffer.from(piece.repeat(bytes / piece.length));
      const { user, system } = process.cpuUsage();
      expect(read(body, 'text/plain')).toMatchObject({ kind: 'data', redacted: false });
      const used = process.cpuUsage({ user, system });
      return (used.user + used.system) / 1_000;
    };
    time(most / 16);
    // Quadratic work would take 256 times as long for 16 times the size.
    expect(time(most)).toBeLessThan(Math.max(10 * MIB, time(most / 16)) * 64);
  });
});
