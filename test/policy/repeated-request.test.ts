/** Which requests are like an approved one: equal, except for members that its owner left open. */
import { describe, expect, test } from 'vitest';
import { isLike } from '../../broker/policy/repeated-request.ts';
import type { Free, FreePlace, Written, WrittenBody } from '../../broker/policy/standing-terms.ts';
import type { JsonObject, JsonValue } from '../../json/json-value.ts';

const members = (value: JsonObject, more: object = {}): WrittenBody => ({
  kind: 'members',
  as: 'json',
  value,
  headers: {},
  ...more,
});
const bytes = (base64: string, headers: Record<string, string> = {}): WrittenBody => ({
  kind: 'bytes',
  base64,
  headers,
});
const HELD: Written = {
  door: 'actions',
  method: 'POST',
  path: '/boards/a/notes',
  query: 'note=x&flag&size=50',
  headers: { 'x-mode': 'a' },
  body: members({ text: 'hello', amount: 50, list: ['x'], nothing: null, meta: { title: 't', visible: true } }),
};
const free = (place: FreePlace, atMost?: number): Free => ({
  member: 'any',
  place,
  ...(atMost !== undefined && { atMost }),
});
const inBody = (...names: string[]): FreePlace => ({ in: 'body', names });
const like = (more: Partial<Written>, open: readonly Free[] = [], held: Partial<Written> = {}) =>
  isLike({ ...HELD, ...held }, { ...HELD, ...held, ...more }, open);
/** With another value of one member of the body, which is left open. */
const withMember = (name: string, value: JsonValue, atMost?: number) =>
  like({ body: members({ ...(HELD.body as { value: JsonObject }).value, [name]: value }) }, [
    free(inBody(name), atMost),
  ]);

describe('a request without open members', () => {
  test('is like an equal one only', () => {
    expect(like({})).toBe(true);
    for (const more of [
      { door: 'raw' },
      { method: 'PUT' },
      { path: '/boards/b/notes' },
      { query: 'note=x&flag=1&size=50' },
      { headers: { 'x-mode': 'b' } },
    ] as const)
      expect(like(more), JSON.stringify(more)).toBe(false);
  });

  test.each(['idempotency-key', 'user-agent', 'x-request-id', 'traceparent', 'tracestate'])(
    'may have another %s',
    (name) => expect(like({ headers: { ...HELD.headers, [name]: 'other' } })).toBe(true),
  );

  test('has a body of the same kind, bytes and headers', () => {
    const text = { 'content-type': 'text/plain' };
    const bodies: WrittenBody[] = [
      { kind: 'none' },
      bytes('YQ=='),
      bytes('Yg=='),
      bytes('YQ==', text),
      members({}),
      members({}, { as: 'form' }),
      members({}, { headers: text }),
      members({ a: 1 }),
    ];
    for (const [i, held] of bodies.entries())
      for (const [k, body] of bodies.entries())
        expect(like({ body }, [], { body: held }), `${JSON.stringify(held)} ${JSON.stringify(body)}`).toBe(i === k);
  });

  test('has the same members, also where one has the name of an inherited member', () => {
    const held = JSON.parse('{"text":"hello","__proto__":{}}') as JsonObject;
    expect(like({}, [], { body: members(held) })).toBe(true);
    expect(like({ body: members({ text: 'hello', cc: 'evil' }) }, [], { body: members(held) })).toBe(false);
  });

  test('is like no other when its body was not read', () => {
    const unread: WrittenBody = { kind: 'unread' };
    expect(like({ body: unread })).toBe(false);
    expect(like({}, [], { body: unread })).toBe(false);
    expect(like({ body: { kind: 'none' } }, [], { body: unread })).toBe(false);
  });
});

describe('an open member', () => {
  test('of the body has the same type', () => {
    expect(withMember('text', 'other')).toBe(true);
    for (const value of [1, true, null, ['hello'], { a: 'hello' }]) expect(withMember('text', value)).toBe(false);
    expect(withMember('list', ['y', 'z'])).toBe(true);
    for (const value of ['x', { 0: 'x' }, null]) expect(withMember('list', value)).toBe(false);
    expect(withMember('nothing', null)).toBe(true);
    for (const value of [{}, [], '']) expect(withMember('nothing', value)).toBe(false);
  });

  test('that is a number is above 0 and within its limit, and is not open without one', () => {
    for (const value of [50, 0.5, 49.99]) expect(withMember('amount', value, 50), String(value)).toBe(true);
    for (const value of [50.01, 0, -1, '49', null, [1]])
      expect(withMember('amount', value, 50), String(value)).toBe(false);
    expect(withMember('amount', 49)).toBe(false);
  });

  test('of the query is an amount only as a plain whole number', () => {
    const size = [free({ in: 'query', name: 'size' }, 50)];
    const sized = (text: string) => like({ query: `note=x&flag&size=${text}` }, size);
    for (const text of ['50', '1']) expect(sized(text), text).toBe(true);
    for (const text of ['51', '0', '-1', '049', '4e1', '49.0', '%34', '', '1000000000000000'])
      expect(sized(text), text).toBe(false);
  });

  test('of the query occurs once, and only its value differs', () => {
    const note = [free({ in: 'query', name: 'note' })];
    expect(like({ query: 'note=y&flag&size=50' }, note)).toBe(true);
    for (const query of [
      'note=y&flag=1&size=50',
      'note=y&flag&size=5',
      'Note=y&flag&size=50',
      'note=y&flag',
      'note=&flag&size=50',
    ])
      expect(like({ query }, note), query).toBe(false);
    expect(like({ query: 'note=y&note=x' }, note, { query: 'note=x&note=x' })).toBe(false);
  });

  test('of the path is one segment', () => {
    const board = [free({ in: 'path', segment: 1 })];
    expect(like({ path: '/boards/b/notes' }, board)).toBe(true);
    for (const path of ['/boards/b', '/boards/b/notes/c', '/boards/b/other', '/boards/../notes', '/boards/b%2Fc/notes'])
      expect(like({ path }, board), path).toBe(false);
  });

  test('may differ together with another one', () => {
    const { value } = HELD.body as { value: JsonObject };
    const body = members({ ...value, text: 'other', meta: { title: 'other', visible: true } });
    expect(like({ body }, [free(inBody('text')), free(inBody('meta', 'title'))])).toBe(true);
    expect(like({ body }, [free(inBody('text'))])).toBe(false);
  });

  test('in an object leaves everything else in it as it is', () => {
    const title = (meta: JsonValue) =>
      like({ body: members({ ...(HELD.body as { value: JsonObject }).value, meta }) }, [free(inBody('meta', 'title'))]);
    expect(title({ title: 'other', visible: true })).toBe(true);
    for (const meta of [
      { title: 'other', visible: false },
      { title: 'other' },
      { visible: true },
      { title: 'other', visible: true, more: 1 },
      { title: 'other', Visible: true },
      null,
      'other',
      ['other', true],
    ])
      expect(title(meta), JSON.stringify(meta)).toBe(false);
  });
});
