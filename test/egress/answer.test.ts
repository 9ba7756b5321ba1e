import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { readAnswer } from '../../broker/egress/answers/answer.ts';
import { makeCredentialPatterns } from '../../broker/egress/credential-search/patterns.ts';
import { sized } from '../world/runner/thorough.ts';

const CANARY = 'CANARY-7f3a+9/b&c d"e\\f=';
const PLAIN = 'CANARY7f3a9bcdef0123456789';

const read = (
  body: string | Buffer,
  type: string | undefined = 'application/json',
  secret = CANARY,
  more: object = {},
) =>
  readAnswer(
    { status: 200, headers: type === undefined ? {} : { 'content-type': type }, body: Buffer.from(body), ...more },
    makeCredentialPatterns(new Secret(secret)),
  );
const data = (...args: Parameters<typeof read>) => {
  const answer = read(...args);
  if (answer.kind !== 'data') return answer.kind;
  JSON.parse(answer.data);
  return answer.data;
};

describe('BD-15 data is JSON for any upstream answer', () => {
  it.each([
    [
      '{"a":1.0,"n":12345678901234567890, "e":1e999}',
      'application/json',
      '{"a":1.0,"n":12345678901234567890, "e":1e999}',
    ],
    ['[1,\n2]', 'application/problem+json; charset=utf-8', '[1,\n2]'],
    ['\ufeff{"a":1}', 'text/json', '{"a":1}'],
    ['{"a":', 'application/json', '"{\\"a\\":"'],
    ['', 'application/json', 'null'],
    ['', undefined, 'null'],
    ['hello "you"', 'text/plain', '"hello \\"you\\""'],
    ['{"a":1}', 'text/html', '"{\\"a\\":1}"'],
    ['<a/>', 'application/xml', '"<a/>"'],
    ['a=1', 'application/x-www-form-urlencoded', '"a=1"'],
    ['{"a":1}', undefined, '{"a":1}'],
    ['plain', undefined, '"plain"'],
    [Buffer.from([0x61, 0xff, 0x62]), 'text/plain', '"a\ufffdb"'],
    [Buffer.from([0xe9]), 'text/plain; charset="ISO-8859-1"', '"é"'],
    [Buffer.from('{"a":"é"}', 'utf16le'), 'application/json; charset=utf-16le', '{"a":"é"}'],
    [Buffer.from('é'), 'text/plain; charset=nonsense', '"é"'],
    ['a\0b', 'text/plain', '"a\\u0000b"'],
    ['"\\ud800"', 'application/json', '"\\ud800"'],
  ] as const)('%j as %s', (body, type, expected) => {
    expect(data(body as string, type)).toBe(expected);
  });

  it('binary data is base64', () => {
    const bytes = Buffer.from([0, 1, 2, 254, 255]);
    for (const type of ['image/png', 'application/octet-stream', 'application/pdf']) {
      expect(read(bytes, type)).toEqual({
        kind: 'data',
        data: '"AAEC/v8="',
        encoding: 'base64',
        redacted: false,
        contentType: type,
        bytes: 5,
      });
    }
    expect(
      readAnswer({ status: 200, headers: {}, body: bytes }, makeCredentialPatterns(new Secret(CANARY))),
    ).toMatchObject({
      encoding: 'base64',
    });
  });

  it('JSON that is not in UTF-8 and declares no charset is base64, so that no value changes', () => {
    const latin = Buffer.from('{"name":"José"}', 'latin1');
    for (const type of ['application/json', 'application/problem+json; charset=utf-8', 'application/json; charset=x'])
      expect(read(latin, type)).toMatchObject({ data: `"${latin.toString('base64')}"`, encoding: 'base64' });
    expect(read(latin, 'application/json; charset=iso-8859-1')).toMatchObject({ data: '{"name":"José"}' });
    const echo = Buffer.concat([latin, Buffer.from(CANARY)]);
    expect(read(echo, 'application/json')).toMatchObject({ kind: 'blocked', cause: 'credential_found' });
  });

  it('a body of a 204 or 304 is ignored', () => {
    expect(read('{"a":1}', 'application/json', CANARY, { status: 204 })).toMatchObject({ data: 'null' });
    expect(read('{"a":1}', 'application/json', CANARY, { status: 304 })).toMatchObject({ data: 'null' });
  });

  it('JSON that is nested too deep is returned as text', () => {
    const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
    expect(data(deep(256))).toBe(deep(256));
    expect(data(deep(257))).toBe(JSON.stringify(deep(257)));
    expect(data(deep(400_000))).toBe(JSON.stringify(deep(400_000)));
    const shallow = JSON.stringify(['['.repeat(1_000), '"{{'.repeat(500)]);
    expect(data(shallow)).toBe(shallow);
  });

  it('the content type is a valid media type or absent', () => {
    expect(read('1', 'Application/JSON ; charset=x')).toMatchObject({ contentType: 'application/json' });
    for (const type of ['', 'json', 'a/b/c', `text/${'x'.repeat(100)}`, 'text/é', 'text/pl ain'])
      expect(read('1', type)).not.toHaveProperty('contentType');
    expect(read('1', `application/${PLAIN.toLowerCase()}`, PLAIN.toLowerCase())).not.toHaveProperty('contentType');
  });

  it('holds for any answer (property)', () => {
    const type = fc.constantFrom(
      'application/json',
      'text/plain',
      'image/png',
      'text/html; charset=utf-16',
      '',
      'application/x+json',
    );
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 60 }),
      fc.json().map((text) => Buffer.from(text)),
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
    );
    fc.assert(
      fc.property(body, type, fc.boolean(), (bytes, contentType, withCanary) => {
        const whole = withCanary ? Buffer.concat([bytes, Buffer.from(PLAIN), bytes]) : Buffer.from(bytes);
        const answer = read(whole, contentType, PLAIN);
        if (answer.kind === 'blocked') return;
        JSON.parse(answer.data);
        expect(answer.data).not.toContain(PLAIN);
        if (answer.encoding) expect(Buffer.from(answer.data, 'base64').includes(PLAIN)).toBe(false);
      }),
      { numRuns: sized(500, 2_000) },
    );
  });
});

describe('CX-01 an echoed credential is redacted', () => {
  it('in JSON, and the rest is unchanged', () => {
    expect(read(`{"headers":{"Authorization":"Bearer ${PLAIN}"},"n":1.0}`, 'application/json', PLAIN)).toEqual({
      kind: 'data',
      data: '{"headers":{"Authorization":"Bearer [redacted]"},"n":1.0}',
      redacted: true,
      contentType: 'application/json',
      bytes: 73,
    });
    expect(read('{"a":1}', 'application/json', PLAIN)).toMatchObject({ redacted: false });
  });
  it('as a member name, as a number, and twice', () => {
    expect(data(`{"${PLAIN}":"${PLAIN}${PLAIN}"}`, 'application/json', PLAIN)).toBe(
      '{"[redacted]":"[redacted][redacted]"}',
    );
    expect(data('{"n":1234567890123456}', 'application/json', '1234567890123456')).toBe('"{\\"n\\":[redacted]}"');
  });
  it.each([
    ['as JSON.stringify writes it', (s: string) => JSON.stringify({ s, n: 1 })],
    ['with escaped slashes', (s: string) => JSON.stringify({ s }).replaceAll('/', '\\/')],
    [
      'with every character escaped',
      (s: string) => `{"s":"${[...s].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"}`,
    ],
    [
      'with some characters escaped',
      (s: string) => JSON.stringify({ s }).replaceAll('+', '\\u002B').replaceAll('C', '\\u0043'),
    ],
    ['as JSON in JSON', (s: string) => JSON.stringify({ body: JSON.stringify({ s }) })],
    [
      'as JSON in JSON, as other libraries write it',
      (s: string) =>
        JSON.stringify({
          body: JSON.stringify({ s })
            .replaceAll('+', '\\u002b')
            .replaceAll('&', '\\u0026')
            .replaceAll('=', '\\u003d')
            .replaceAll('/', '\\u002f'),
        }),
    ],
    ['percent-encoded', (s: string) => JSON.stringify({ s: encodeURIComponent(s) })],
    [
      'percent-encoded in lower case',
      (s: string) => JSON.stringify({ s: encodeURIComponent(s).replace(/%../g, (x) => x.toLowerCase()) }),
    ],
    ['as a form', (s: string) => JSON.stringify({ s: new URLSearchParams({ s }).toString() })],
    ['in hexadecimal', (s: string) => JSON.stringify({ s: Buffer.from(s).toString('hex') })],
    ['in upper-case hexadecimal', (s: string) => JSON.stringify({ s: Buffer.from(s).toString('hex').toUpperCase() })],
    ['in base64', (s: string) => JSON.stringify({ s: Buffer.from(s).toString('base64') })],
    [
      'in base64 with a slash escaped',
      (s: string) => JSON.stringify({ s: Buffer.from(s).toString('base64') }).replaceAll('/', '\\/'),
    ],
    ['in base64url', (s: string) => JSON.stringify({ s: Buffer.from(s).toString('base64url') })],
    ['in base64 after one byte', (s: string) => JSON.stringify({ s: Buffer.from(`x${s}y`).toString('base64') })],
    [
      'in base64 after two bytes',
      (s: string) => JSON.stringify({ s: Buffer.from(`Bearer:${s.slice(0)}`).toString('base64url') }),
    ],
    [
      'in base64 inside much',
      (s: string) => JSON.stringify({ s: Buffer.from(`Bearer ${s} and more`).toString('base64') }),
    ],
  ])('%s', (_, write) => {
    for (const secret of [CANARY, PLAIN, 'sk_live_4eC39HqLyjWDarjtT1zdp7dc', 'ann@up.test:s3cret-Passw0rd!']) {
      const answer = read(write(secret), 'application/json', secret);
      if (answer.kind !== 'data') throw new Error(answer.kind);
      expect(answer.redacted, answer.data).toBe(true);
      expect(answer.data).toContain('[redacted]');
      expect(Object.keys(JSON.parse(answer.data))).toEqual(Object.keys(JSON.parse(write(secret))));
      for (const bytes of [0, 1, 2]) {
        const core = Buffer.from('x'.repeat(bytes) + secret)
          .toString('base64')
          .slice(bytes + 1, -4);
        expect(answer.data.replaceAll('\\/', '/')).not.toContain(core);
      }
    }
  });
  it('in text of any type and charset', () => {
    for (const type of ['text/html', 'text/plain', 'application/xml', 'text/csv; charset=iso-8859-1']) {
      expect(read(`a ${PLAIN} b`, type, PLAIN)).toMatchObject({ data: '"a [redacted] b"', redacted: true });
    }
    const wide = Buffer.from(`{"a":"${PLAIN}"}`, 'utf16le');
    expect(read(wide, 'application/json; charset=utf-16', PLAIN)).toMatchObject({ data: '{"a":"[redacted]"}' });
    expect(read(wide, 'application/json', PLAIN)).toMatchObject({ kind: 'blocked' });
    expect(read(Buffer.from(wide).swap16(), 'text/plain', PLAIN)).toMatchObject({ kind: 'blocked' });
  });
  it('not in text that is declared as UTF-16 and is not', () => {
    for (const charset of ['utf-16le', 'utf-16be', 'utf-16'])
      for (const body of [PLAIN, `${PLAIN}.`, `x${PLAIN}`, `x${PLAIN}.`])
        expect(read(Buffer.from(body), `text/plain; charset=${charset}`, PLAIN)).toMatchObject({ kind: 'blocked' });
    const wide = Buffer.from(`a ${PLAIN} b`, 'utf16le');
    expect(read(wide, 'text/plain; charset=utf-16be', PLAIN)).toMatchObject({ kind: 'blocked' });
    expect(read(wide, 'text/plain; charset=utf-16le', PLAIN)).toMatchObject({ data: '"a [redacted] b"' });
    expect(read(Buffer.from(wide).swap16(), 'text/plain; charset=utf-16be', PLAIN)).toMatchObject({
      data: '"a [redacted] b"',
    });
  });
  it('a short password in its Basic form', () => {
    const patterns = makeCredentialPatterns(new Secret('admin:changeme1'), { basic: true });
    const headers = { 'content-type': 'application/json' };
    const body = Buffer.from('{"authorization":"Basic YWRtaW46Y2hhbmdlbWUx","password":"changeme1"}');
    expect(readAnswer({ status: 200, headers, body }, patterns)).toMatchObject({
      data: '{"authorization":"Basic [redacted]","password":"[redacted]"}',
    });
  });
  it('Basic: user and password together, and the password alone, are redacted', () => {
    const patterns = makeCredentialPatterns(new Secret('ann@up.test:s3cret-Passw0rd!'), { basic: true });
    const answer = readAnswer(
      {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: Buffer.from('{"p":"s3cret-Passw0rd!","u":"ann@up.test","b":"YW5uQHVwLnRlc3Q6czNjcmV0LVBhc3N3MHJkIQ=="}'),
      },
      patterns,
    );
    expect(answer).toMatchObject({ data: '{"p":"[redacted]","u":"ann@up.test","b":"[redacted]"}' });
  });
});

describe('CX-08 binary data that contains the credential is withheld', () => {
  it.each([
    ['as it is', Buffer.from(PLAIN)],
    ['in base64', Buffer.from(Buffer.from(PLAIN).toString('base64'))],
    ['in hexadecimal', Buffer.from(Buffer.from(PLAIN).toString('hex'))],
    ['as UTF-16, little end first', Buffer.from(PLAIN, 'utf16le')],
    ['as UTF-16, big end first', Buffer.from(PLAIN, 'utf16le').swap16()],
  ])('%s', (_, bytes) => {
    const image = Buffer.concat([Buffer.from([0x89, 0x50, 0]), bytes, Buffer.from([0xff])]);
    expect(read(image, 'image/png', PLAIN)).toEqual({
      kind: 'blocked',
      cause: 'credential_found',
      contentType: 'image/png',
      bytes: image.length,
    });
    expect(read(image, undefined, PLAIN)).toMatchObject({ kind: 'blocked' });
  });
});

describe('CX-09 redaction does not reveal guesses', () => {
  it('parts of a credential are never redacted', () => {
    for (let length = 1; length < PLAIN.length; length++) {
      for (const part of [PLAIN.slice(0, length), PLAIN.slice(-length)]) {
        expect(read(JSON.stringify({ part }), 'application/json', PLAIN)).toMatchObject({
          redacted: false,
          data: JSON.stringify({ part }),
        });
      }
    }
    expect(read(JSON.stringify({ part: PLAIN.toLowerCase() }), 'application/json', PLAIN)).toMatchObject({
      redacted: false,
    });
  });
  it('short credentials are redacted too, but not below 8 characters', () => {
    const short = 'abc+/=23';
    expect(data(`["${short}"]`, 'application/json', short)).toBe('["[redacted]"]');
    for (const form of [
      encodeURIComponent(short),
      Buffer.from(short).toString('hex'),
      Buffer.from(short).toString('base64'),
    ]) {
      expect(data(`["${form}"]`, 'application/json', short)).toBe('["[redacted]"]');
    }
    expect(data('["abcdefg"]', 'application/json', 'abcdefg')).toBe('["abcdefg"]');
    expect(data('["x"]', 'application/json', '')).toBe('["x"]');
  });
});

describe('HD-13 the target of a redirect', () => {
  const location = (text: string | string[], status = 302) => {
    const answer = readAnswer(
      { status, headers: { location: text, 'set-cookie': 'a' }, body: Buffer.alloc(0) },
      makeCredentialPatterns(new Secret(PLAIN)),
    );
    return answer.kind === 'data' ? [answer.location, answer.redacted] : [];
  };
  it('is shown redacted, without query, fragment and userinfo', () => {
    expect(location('/a/b')).toEqual(['/a/b', false]);
    expect(location('https://u:p@cdn.test/x?token=abc#y')).toEqual(['https://cdn.test/x', false]);
    expect(location('//u@cdn.test/x')).toEqual(['//cdn.test/x', false]);
    expect(location(`https://cdn.test/${PLAIN}/x`)).toEqual(['https://cdn.test/[redacted]/x', true]);
    expect(location(`https://cdn.test/x?t=${PLAIN}`)).toEqual(['https://cdn.test/x', true]);
    expect(location(['/first', '/second'])).toEqual(['/first', false]);
    expect(location('/é\u0001')).toEqual(['/%C3%A9%01', false]);
    expect(location(`/${'a'.repeat(5_000)}`)[0]).toHaveLength(2_048);
    expect(location('/a', 200)).toEqual([undefined, false]);
  });
});

describe('CX-11 objects with credentials cannot be printed', () => {
  it('patterns print and serialise without the credential', () => {
    const patterns = makeCredentialPatterns(new Secret(PLAIN));
    for (const text of [
      JSON.stringify({ patterns }),
      inspect(patterns, { depth: 9, showHidden: true }),
      inspect(patterns, { customInspect: false }),
      String(patterns),
      JSON.stringify(structuredClone(patterns)),
    ]) {
      expect(text).not.toContain('CANARY');
    }
    expect(JSON.stringify(patterns)).toBe('"[secret]"');
  });
});

it('reads 10 MiB in well under a second, 1 KiB in microseconds', () => {
  const patterns = makeCredentialPatterns(new Secret(PLAIN));
  const big = Buffer.from(
    JSON.stringify(Array.from({ length: 80_000 }, (_, i) => ({ i, text: 'a "quoted" line\nwith escapes '.repeat(3) }))),
  );
  // CPU time, because a busy machine takes longer.
  const before = process.cpuUsage();
  readAnswer({ status: 200, headers: { 'content-type': 'application/json' }, body: big }, patterns);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000).toBeLessThan(2_000);
});
