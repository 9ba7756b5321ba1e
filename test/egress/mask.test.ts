/** Masking of answers: members by name and path, values by their form, in JSON, events, lines and text. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { type AnswerMask, readAnswer } from '../../broker/egress/answers/answer.ts';
import { maskedHeaders, maskingOf, maskText } from '../../broker/egress/answers/mask-answer.ts';
import { maskJson } from '../../broker/egress/answers/mask-json.ts';
import { PieceMasker } from '../../broker/egress/answers/mask-lines.ts';
import { makeCredentialPatterns } from '../../broker/egress/credential-search/patterns.ts';
import { VALUE_KINDS, type ValueKind, valuesOf } from '../../broker/policy/value-kinds.ts';

const CARD = '4111 1111 1111 1111';
const masking = (members: string[], values: ValueKind[] = [], isTool = false) =>
  maskingOf({ members, values, isStrict: true }, isTool);
const json = (value: unknown, members: string[], values: ValueKind[] = [], isTool = false) => {
  const masked = maskJson(JSON.stringify(value), masking(members, values, isTool));
  return masked && JSON.parse(masked.text);
};

describe('masked members', () => {
  test('by name at any depth: a text becomes [masked], any other value null', () => {
    const value = { email: 'a', n: [{ email: 7, x: 1 }, { email: { deep: 'a' } }, { email: ['a'] }, { email: null }] };
    expect(json(value, ['email'])).toEqual({
      email: '[masked]',
      n: [{ email: null, x: 1 }, { email: null }, { email: null }, { email: null }],
    });
  });

  test.each([
    ['apiKey', 'api_key'],
    ['API-Key', 'api_key'],
    ['api_key', 'apiKey'],
    ['ａｐｉＫｅｙ', 'api_key'],
    ['billing_email', '*email'],
    ['emailAddress', 'email*'],
    ['my_email_address', '*email*'],
    ['refresh_token_v2', 'refresh*token*'],
  ])('%s is masked by %s', (name, member) => {
    expect(json({ [name]: 'secret', other: 'kept' }, [member])).toEqual({ [name]: '[masked]', other: 'kept' });
  });

  test.each([
    ['emails', 'email'],
    ['email', 'emails'],
    ['_email', 'email'],
    ['tokenrefresh', 'refresh*token*'],
    ['aba', 'ab*ba'],
  ])('%s is not masked by %s', (name, member) => {
    expect(json({ [name]: 'kept' }, [member])).toEqual({ [name]: 'kept' });
  });

  test('by path: * matches one step, ** any number, and indexes are steps', () => {
    const value = { contacts: [{ notes: 'a', name: 'b' }], notes: 'c', deep: { contacts: { notes: 'd' } } };
    const one = { ...value, contacts: [{ notes: '[masked]', name: 'b' }] };
    expect(json(value, ['/contacts/*/notes'])).toEqual(one);
    expect(json(value, ['/contacts/0/notes'])).toEqual(one);
    expect(json(value, ['/contacts'])).toEqual({ ...value, contacts: null });
    expect(json(value, ['/**/notes'])).toEqual({
      contacts: [{ notes: '[masked]', name: 'b' }],
      notes: '[masked]',
      deep: { contacts: { notes: '[masked]' } },
    });
    expect(json(value, ['/deep/**'])).toEqual({ ...value, deep: null });
    expect(json([{ a: 1 }, { a: 2 }], ['/*/a'])).toEqual([{ a: null }, { a: null }]);
    expect(json([['x']], ['/0/0'])).toEqual([['[masked]']]);
  });

  test('an escaped name matches, and both of two duplicate names are masked', () => {
    const text = '{"\\u0065mail":"a","email":"b","x":{"EMAIL":"c"}}';
    expect(maskJson(text, masking(['email']))).toEqual({
      text: '{"\\u0065mail":"[masked]","email":"[masked]","x":{"EMAIL":"[masked]"}}',
      count: 3,
    });
  });

  test('JSON within a text is masked there, and a text that only looks like JSON is unchanged', () => {
    const inner = JSON.stringify({ email: 'a', again: JSON.stringify([{ email: 'b' }]) });
    expect(json({ log: inner, note: '[draft] email' }, ['email'])).toEqual({
      log: JSON.stringify({ email: '[masked]', again: '[{"email":"[masked]"}]' }),
      note: '[draft] email',
    });
    let nested = '{"email":"a"}';
    for (let i = 0; i < 8; i++) nested = JSON.stringify({ in: nested });
    expect(maskJson(nested, masking(['email']))?.text).not.toContain('"a');
  });

  test('unmasked parts keep their original text', () => {
    const text = '{ "n": 12345678901234567890, "e":1e999,\n"email" : "x" , "s":"\\u00e9" }';
    expect(maskJson(text, masking(['email']))?.text).toBe(text.replace('"x"', '"[masked]"'));
    expect(maskJson(text, masking(['other']))).toEqual({ text, count: 0 });
    expect(maskJson('{"email":', masking(['email']))).toBeUndefined();
    expect(maskJson('{"email":{"a":1', masking(['email']))).toBeUndefined();
  });

  test('property: no value below a named member is left in any context, and JSON stays valid', () => {
    const leaf = fc.oneof(fc.constant('SECRET'), fc.constant(424242), fc.constant(['SECRET', { k: 'SECRET' }]));
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(fc.string(), fc.integer({ max: 1000 }), fc.boolean(), fc.constant(null)),
        fc.array(tie('node'), { maxLength: 4 }),
        fc.dictionary(fc.constantFrom('a', 'b', 'Email', 'e-mail', 'x"y', ''), tie('node'), { maxKeys: 4 }),
        fc.record({ email: leaf, b: tie('node') }),
      ),
    })).node;
    fc.assert(
      fc.property(tree, fc.boolean(), (value, isWrapped) => {
        const text = JSON.stringify(isWrapped ? { log: JSON.stringify(value) } : value);
        const masked = maskJson(text, masking(['email']));
        expect(masked?.text).not.toMatch(/SECRET|424242/);
        JSON.parse(masked?.text ?? '');
      }),
    );
  });
});

describe('masked values', () => {
  test.each<[ValueKind, string, string]>([
    ['email', 'write ann@x.example, now', 'write [masked], now'],
    ['email', "o'neil+tag@mail.x.example", '[masked]'],
    ['email', '?to=bob%40y.example&x', '?to=[masked]&x'],
    ['email', 'jürgen@müller.example!', '[masked]!'],
    ['phone', 'call +49 (30) 123-4567.', 'call [masked].'],
    ['card', `paid by ${CARD} 12/28`, 'paid by [masked] 12/28'],
    ['card', 'card 5500-0000-0000-0004.', 'card [masked].'],
    ['card', 'n 7 4111111111111111', 'n 7 [masked]'],
    ['iban', 'to DE89 3704 0044 0532 0130 00 AND more', 'to [masked] AND more'],
    ['phone', 'call 0049 30 1234567, or', 'call [masked], or'],
    ['phone', 'call 00 33 (0)6 12-34-56-78', 'call [masked]'],
    ['phone', 'call 001-415-555-2671', 'call [masked]'],
    ['card', 'card 4111.1111.1111.1111.', 'card [masked].'],
    ['card', 'card 3782.822463.10005', 'card [masked]'],
    ['iban', 'to de89 3704 0044 0532 0130 00 and more', 'to [masked] and more'],
    ['iban', 'to De89370400440532013000, now', 'to [masked], now'],
    ['iban', 'fr14 2004 1010 0505 0001 3m02 606', '[masked]'],
    // With the blanks and hyphens of address books, at which no line is broken.
    ['phone', 'call +1\u00a0(415)\u00a0555\u20112671.', 'call [masked].'],
    ['phone', 'call +33\u202f6\u202f12\u202f34\u202f56\u202f78.', 'call [masked].'],
    ['card', 'card 5500\u00a00000\u20090000\u00a00004.', 'card [masked].'],
    ['iban', 'to DE89\u00a03704\u00a00044\u00a00532\u00a00130\u00a000\u00a0AND more', 'to [masked]\u00a0AND more'],
    ['national_id', 'is 078\u201105\u20111120.', 'is [masked].'],
    ['national_id', 'id 123-45-6789', 'id [masked]'],
    ['api_key', 'use ghp_abcdefghijklmnopqrstuvwxyz0123456789!', 'use [masked]!'],
    ['api_key', 'AKIAIOSFODNN7EXAMPLE', '[masked]'],
    ['api_key', 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2ln', '[masked]'],
    ['api_key', '-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----', '[masked]'],
  ])('%s in %j', (kind, text, expected) => {
    expect(json({ a: text }, [], [kind])).toEqual({ a: expected });
    // A text whose beginning looks like JSON is still a text.
    expect(json({ a: `[x ${text}` }, [], [kind])).toEqual({ a: `[x ${expected}` });
  });

  test.each<[ValueKind, string]>([
    ['api_key', 'my token:\nghp_abcdefghijklmnopqrstuvwxyz0123456789'],
    ['phone', 'call\n+49 30 1234567'],
    ['iban', 'pay\nDE89370400440532013000'],
    ['email', 'hello\njane@x.example'],
  ])('%s in JSON within a text, and in lines of JSON, which stay valid', (kind, text) => {
    const secret = text.slice(text.indexOf('\n') + 1);
    const inner = JSON.stringify({ body: text });
    const masked = `${text.slice(0, text.indexOf('\n') + 1)}[masked]`;
    const value = { content: [{ type: 'text', text: inner }], structuredContent: { body: text } };
    const got = json(value, [], [kind], true);
    expect(JSON.parse(got.content[0].text)).toEqual({ body: masked });
    expect(got.structuredContent).toEqual({ body: masked });
    const log = maskText(`${inner}\nnot ${inner}`, { type: 'text/plain', isJson: false }, masking([], [kind]));
    expect(log?.text).not.toContain(secret);
    expect(JSON.parse(log?.text.split('\n')[0] ?? '')).toEqual({ body: masked });
  });

  test.each<[ValueKind, string, string]>([
    ['card', Array(6).fill(CARD).join(' '), Array(6).fill('[masked]').join(' ')],
    ['iban', 'DE89 3704 0044 0532 0130 00 GB29 NWBK 6016 1331 9268 19', '[masked] [masked]'],
    ['iban', 'Ref RE24 DE89370400440532013000', 'Ref RE24 [masked]'],
    [
      'api_key',
      '-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIE\n-----END RSA PRIVATE KEY-----',
      '[masked]',
    ],
  ])('%s next to each other, or after something that only looks like one', (kind, text, expected) => {
    expect(json([text], [], [kind])).toEqual([expected]);
  });

  test.each<[ValueKind, string]>([
    ['email', 'a @ b, @team, x@y'],
    ['card', '4111 1111 1111 1112, 1234567812345670, 550e8400-e29b-41d4-a716-446655440000'],
    ['card', '0.4111111111111111'],
    ['iban', 'DE89 3704 0044 0532 0130 01'],
    ['card', '4111.1111.1111.1112, 1.4111.1111.1111.1111, 4111.1111.1111.1111.2, 41.1111.1111.1111.11'],
    // Small letters: another length than that of the country, no such country, other groups.
    ['iban', 'de12 cats 0000 1111 2222 3333, gb82west1234569876543, de8 93704 0044 0532 0130 00'],
    ['iban', 'xy47370400440532013000, at 12 noon we met 30 people, id de89370400440532013000af'],
    ['phone', '1+2, +1 23'],
    // Article numbers, padded numbers, times and dates.
    ['phone', '0049000028911, 0012 3456 7890, 00012345600012, 00:49:30, 0049.301234567, 0024-01-02, x0049 30 1234567'],
    ['national_id', '000-12-3456 1123-45-67890'],
    ['api_key', 'ghp_short, sk-learn'],
  ])('no %s in %j', (kind, text) => {
    expect([...valuesOf(kind, text)]).toEqual([]);
  });

  test('in names, which stay distinct, and in a number', () => {
    expect(json({ 'ann@x.example': 1, 'bob@x.example': 2, c: 4111111111111111 }, [], ['email', 'card'])).toEqual({
      '[masked] 1': 1,
      '[masked] 2': 2,
      c: null,
    });
  });

  test('every kind is masked at any position in a text', () => {
    const samples: Record<ValueKind, string> = {
      email: 'ann@x.example',
      phone: '+49 30 1234567',
      card: CARD,
      iban: 'DE89370400440532013000',
      national_id: '123-45-6789',
      api_key: 'ghp_abcdefghijklmnopqrstuvwxyz0123456789',
    };
    const around = fc.stringMatching(/^(?:[a-z,;:!?"\n]{0,8} )?$/);
    fc.assert(
      fc.property(fc.constantFrom(...VALUE_KINDS), around, around, (kind, before, after) => {
        const text = `${before}${samples[kind]}${after === '' ? '' : ` ${after}`}`;
        expect(json([text], [], [kind])[0]).not.toContain(samples[kind]);
      }),
    );
  });
});

describe('an answer crafted to be expensive takes linear time', () => {
  const cpuMs = (work: () => unknown): number => {
    const before = process.threadCpuUsage();
    work();
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  };
  const DEEP = (levels: number, inside = '') => `${'['.repeat(levels)}${inside}${']'.repeat(levels)}`;
  const SIZE = 256 * 1024;

  test.each<[string, () => unknown]>([
    ['deep lists', () => maskJson(DEEP(SIZE / 2), masking(['/**/a/**/email']))],
    [
      'many values in deep lists',
      () => maskJson(DEEP(250, Array(60_000).fill('""').join()), masking(['/**/a/**/b/**/email'])),
    ],
    [
      'many texts deep in the result of a tool',
      () => maskJson(`{"content":${DEEP(200, Array(60_000).fill('""').join())}}`, masking([], ['api_key'], true)),
    ],
    ['text that looks like tokens', () => maskJson(JSON.stringify('eyJ-'.repeat(SIZE / 4)), masking([], ['api_key']))],
    [
      'text that looks like account numbers',
      () => maskJson(JSON.stringify('AA11 '.repeat(SIZE / 5)), masking([], ['iban'])),
    ],
    [
      'an event in pieces of one letter',
      () => {
        const masker = new PieceMasker('events', masking(['email']));
        masker.push(`data: ${'x'.repeat(900_000)}`);
        for (let i = 0; i < 50_000; i++) masker.push('x');
      },
    ],
  ])('%s', (_, work) => {
    expect(cpuMs(work)).toBeLessThan(2_000);
  });

  test('JSON that is nested too deep is withheld, and masked as a whole within a text', () => {
    expect(maskJson(DEEP(300), masking(['email']))).toBeUndefined();
    expect(json({ log: DEEP(300, '{"email":"a"}') }, ['email'])).toEqual({ log: '[masked]' });
  });
});

describe('tool results', () => {
  const result = (content: object[], more: object = {}) => ({ content, ...more });
  test('JSON in a text is masked like the structured content, by paths from either root', () => {
    const value = { people: [{ email: 'a', name: 'b' }] };
    const masked = { people: [{ email: '[masked]', name: 'b' }] };
    const both = result([{ type: 'text', text: JSON.stringify(value) }], { structuredContent: value });
    for (const member of ['email', '/people/*/email'])
      expect(json(both, [member], [], true)).toEqual(
        result([{ type: 'text', text: JSON.stringify(masked) }], { structuredContent: masked }),
      );
  });

  test('a text that is not JSON, and bytes, are masked as a whole', () => {
    const blocks = result([
      { type: 'text', text: 'email: a' },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
      { type: 'resource', resource: { uri: 'x://y', text: 'a' } },
      { type: 'resource', resource: { uri: 'x://y', blob: 'aGk=' } },
    ]);
    expect(json(blocks, ['email'], [], true)).toEqual(
      result([
        { type: 'text', text: '[masked]' },
        { type: 'image', data: '[masked]', mimeType: 'image/png' },
        { type: 'resource', resource: { uri: 'x://y', text: '[masked]' } },
        { type: 'resource', resource: { uri: 'x://y', blob: '[masked]' } },
      ]),
    );
    // With value masks a text is searched; bytes cannot be.
    expect(json(blocks, [], ['email'], true).content.map(({ text, data }: never) => text ?? data)).toEqual([
      'email: a',
      '[masked]',
      undefined,
      undefined,
    ]);
  });
});

describe('buffered answers', () => {
  const read = (body: string | Buffer, type: string, mask: AnswerMask, more: object = {}) =>
    readAnswer(
      { status: 200, headers: { 'content-type': type }, body: Buffer.from(body), ...more },
      makeCredentialPatterns(new Secret('CANARY7f3a9bcdef0123456789')),
      mask,
    );
  const MEMBERS: AnswerMask = { members: ['email'], values: [], isStrict: true };
  const VALUES: AnswerMask = { members: [], values: ['email'], isStrict: true };

  test.each([
    ['<a>ann@x.example</a>', 'text/html'],
    ['a,email', 'text/csv'],
    ['{"email":"a"', 'application/json'],
  ])('%j as %s is withheld when members are masked', (body, type) => {
    expect(read(body, type, MEMBERS)).toMatchObject({ kind: 'blocked', cause: 'not_masked' });
  });

  test('JSON is masked under any type, also when declared as events, lines or UTF-16', () => {
    const pretty = JSON.stringify({ email: 'ann@x.example', n: 1 }, null, 2);
    for (const type of ['text/plain', 'text/event-stream', 'application/x-ndjson'])
      expect(read(pretty, type, MEMBERS)).toMatchObject({ masked: 1, isText: true });
    const yaml = 'email: ann@x.example\nid: 7\nevent: x\n: email ann\n\nemail: bob\n';
    expect(read(yaml, 'text/event-stream', MEMBERS)).toMatchObject({
      data: JSON.stringify(':\nid: 7\nevent: x\n:\n\n:\n'),
      masked: 2,
    });
    const named = { ...MEMBERS, members: ['id'] };
    expect(read(yaml, 'text/event-stream', named)).toMatchObject({ data: expect.not.stringContaining('7') });
    expect(read('{"a":"ann\\u0040x.example"}', 'text/plain', VALUES)).toMatchObject({ masked: 1 });
    for (const mask of [MEMBERS, VALUES])
      expect(read(pretty, 'text/plain; charset=utf-16le', mask)).toMatchObject({
        kind: 'blocked',
        cause: 'not_masked',
      });
  });

  test('UTF-16 that is not declared is withheld', () => {
    const body = Buffer.from('\ufeffname,mail\nJane,jane@x.example\n', 'utf16le');
    for (const type of ['text/csv', 'text/plain; charset=utf-8', 'application/json'])
      expect(read(body, type, VALUES)).toMatchObject({ kind: 'blocked', cause: 'not_masked' });
  });

  test('JSON in a charset that it does not declare is withheld', () => {
    const body = Buffer.from('{"email":"josé@x.example"}', 'latin1');
    for (const mask of [MEMBERS, VALUES, { ...MEMBERS, isStrict: false }])
      expect(read(body, 'application/json', mask)).toMatchObject({ kind: 'blocked', cause: 'not_masked' });
  });

  test('the reported length is that of the masked answer', () => {
    const bytes = (email: string) => read(JSON.stringify({ email }), 'application/json', MEMBERS);
    expect(bytes('a')).toMatchObject({ bytes: 20 });
    expect(bytes('a'.repeat(50))).toMatchObject({ bytes: 20 });
  });

  test('binary and partial answers are withheld', () => {
    for (const mask of [MEMBERS, VALUES]) {
      expect(read(Buffer.from([0, 1, 255]), 'image/png', mask)).toMatchObject({ kind: 'blocked', cause: 'not_masked' });
      expect(read('{}', 'application/json', mask, { status: 206 })).toMatchObject({ cause: 'not_masked' });
    }
  });

  test('a non-strict mask, as of a manifest, passes on text that is not JSON, but no partial answer', () => {
    const mask = { ...MEMBERS, isStrict: false };
    expect(read('{"email":"a"}', 'application/json', mask)).toMatchObject({ data: '{"email":"[masked]"}', masked: 1 });
    expect(read('<h1>a</h1>', 'text/html', mask)).toMatchObject({ data: '"<h1>a</h1>"' });
    expect(read(Buffer.from([0, 255]), 'image/png', mask)).toMatchObject({ encoding: 'base64' });
    expect(read('{"email":"a"}', 'application/octet-stream', mask)).toMatchObject({ cause: 'not_masked' });
    // The beginning that was cut off may contain the name of the member.
    expect(read('{"email":"a"}', 'application/json', mask, { status: 206 })).toMatchObject({ cause: 'not_masked' });
  });

  test.each<[string, string, string[]]>([
    ['a script (JSONP)', '/**/x({"meta":{},"data":{\n"email": "a"}})', ['email']],
    ['a name that is escaped', 'x({"\\u0065mail":"a"})', ['email']],
    ['JSON in a text of it', String.raw`x({"t":"{\"email\":\"a\"}"})`, ['email']],
    ['after JSON on another line', '{"a":1}\nx({"eMail" :"a"})', ['email']],
    ['the last name of a path', 'x({"data":{"email":"a"}})', ['/data/email']],
    ['a name in the middle of a path', 'x({"keys":["a"]})', ['/keys/*']],
    ['JSON that ends too early', '{"email":"a"', ['email']],
    ['JSON that is nested too deep', `${'['.repeat(300)}{"email":"a"}${']'.repeat(300)}`, ['email']],
  ])('a manifest mask withholds text that is not JSON when it contains a masked member: %s', (_, body, members) => {
    const mask = { members, values: [], isStrict: false };
    for (const type of ['application/javascript', 'text/plain', 'application/octet-stream'])
      expect(read(body, type, mask)).toMatchObject({ cause: 'not_masked' });
    expect(read(body, 'application/javascript', { ...mask, members: ['mail', '/data/mail'] })).toMatchObject({
      isText: true,
      masked: 0,
    });
    expect(read('the "email" of {"email":\'s', 'text/plain', { ...mask, members: ['phone'] }).kind).toBe('data');
  });

  test('a manifest mask masks events and lines that are not JSON when they contain a masked member', () => {
    const mask = { ...MEMBERS, isStrict: false };
    expect(read('data: x({"email":"a"})\n\n', 'text/event-stream', mask)).toMatchObject({
      data: '"data: [masked]\\n\\n"',
      masked: 1,
    });
    expect(read('x({"email":"a"})\n\ndata: a\n\n', 'text/event-stream', mask)).toMatchObject({
      data: '":\\n\\ndata: a\\n\\n"',
      masked: 1,
    });
    expect(read('{"email":"a"}\n x({"email":"a"})\n', 'application/x-ndjson', mask)).toMatchObject({ masked: 2 });
  });

  test('values are masked in any text and in headers; an empty answer stays empty', () => {
    expect(read('<a>ann@x.example</a>', 'text/html', VALUES)).toMatchObject({
      data: '"<a>[masked]</a>"',
      masked: 1,
    });
    const headers = { 'content-type': 'application/json', link: '</x?m=ann%40x.example>; rel="next"', etag: '"a"' };
    expect(read('{}', '', VALUES, { headers: { ...headers, 'retry-after': '1' } })).toMatchObject({
      headers: { 'retry-after': '1' },
    });
    expect(read('', 'application/json', MEMBERS)).toMatchObject({ data: 'null' });
    const moved = { status: 302, headers: { location: 'https://x.example/ann@x.example/' } };
    expect(read('', '', VALUES, moved)).toMatchObject({ location: 'https://x.example/[masked]/' });
  });

  test('declared UTF-16 is decoded and masked', () => {
    const body = Buffer.from('{"email":"ann"}', 'utf16le');
    expect(read(body, 'application/json; charset=utf-16le', MEMBERS)).toMatchObject({ data: '{"email":"[masked]"}' });
  });

  test('headers that reveal masked content are dropped', () => {
    const headers = {
      'content-length': '1',
      etag: 'x',
      'content-md5': 'x',
      digest: 'x',
      'repr-digest': 'x',
      'x-amz-checksum-sha256': 'x',
      'x-goog-hash': 'x',
      'x-user': 'ann@x.example',
      'content-type': 'application/json',
      'x-hashtag': 'kept',
    };
    const kept = { 'content-type': 'application/json', 'x-hashtag': 'kept' };
    for (const hasAny of [true, false]) expect(maskedHeaders(headers, masking([], ['email']), hasAny)).toEqual(kept);
    // With a manifest mask that matched nothing, the headers reveal nothing and are kept.
    const ofPlatform = { values: [], isStrict: false };
    expect(maskedHeaders(headers, ofPlatform, false)).toEqual(headers);
    expect(maskedHeaders(headers, ofPlatform, true)).toEqual({ ...kept, 'x-user': 'ann@x.example' });
  });
});

describe('events and lines', () => {
  const inPieces = (kind: 'events' | 'lines', text: string, members: string[], values: ValueKind[], cuts: number[]) => {
    const masker = new PieceMasker(kind, masking(members, values));
    let out = '';
    let at = 0;
    for (const cut of [...cuts].sort((a, b) => a - b)) {
      out += masker.push(text.slice(at, cut)) ?? '<too long>';
      at = Math.max(at, cut);
    }
    return out + (masker.push(text.slice(at)) ?? '<too long>') + masker.end();
  };
  const EVENTS =
    ': hello ann@x.example\r\nevent: change\r\ndata: {"email":"a","n":1}\r\n\r\ndata:{"n":\ndata:2,"email":"b"}\nid: 7\n\ndata: [DONE]\n\ndata\n\ndata: ann@x.example\rid: 8\r\rretry: 5\n\ndata: {"email":"c"}';
  const MASKED =
    ':\r\nevent: change\r\ndata: {"email":"[masked]","n":1}\r\n\r\ndata: {"n":\ndata: 2,"email":"[masked]"}\nid: 7\n\ndata: [DONE]\n\ndata\n\ndata: [masked]\rid: 8\r\rretry: 5\n\ndata: {"email":"[masked]"}';

  test('the data of each event is masked as soon as the event is complete', () => {
    expect(inPieces('events', EVENTS, ['email'], ['email'], [])).toBe(MASKED);
    const masker = new PieceMasker('events', masking(['email']));
    expect(masker.push('data: {"email"')).toBe('');
    expect(masker.push(':"a"}\n')).toBe('');
    expect(masker.push('\n')).toBe('data: {"email":"[masked]"}\n\n');
  });

  test('property: the result does not depend on how the text is split', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(EVENTS.length), { maxLength: 20 }), (cuts) => {
        expect(inPieces('events', EVENTS, ['email'], ['email'], cuts)).toBe(MASKED);
      }),
    );
  });

  test('JSON lines are masked one by one, and a line that is not JSON as a whole', () => {
    expect(inPieces('lines', '{"email":"a"}\n{"n":1}\nfree text\n42\n\n{"email":"b"}', ['email'], [], [5, 20])).toBe(
      '{"email":"[masked]"}\n{"n":1}\n[masked]\n[masked]\n\n{"email":"[masked]"}',
    );
  });

  test('a piece that is too long cannot be masked', () => {
    expect(new PieceMasker('lines', masking(['email'])).push('x'.repeat(1_100_000))).toBeUndefined();
    expect(new PieceMasker('events', masking(['email'])).push('data: x\n'.repeat(200_000))).toBeUndefined();
  });
});
