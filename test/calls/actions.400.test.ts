import { beforeEach, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectMalformed } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const ANY = { 'demo:any': ['GET /**', 'POST /**', 'DELETE /**'] };
const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:any' };
const WRITE = { ...READ, method: 'POST' };
const json = (text: string) => `{"platform":"demo","endpoint":"/items","method":"POST","scope":"demo:any",${text}}`;

describe.each(ONE_STORE)(`POST /v1/actions answers 400 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { scopes: ANY } }));
  const agent = shared(() =>
    organisation.agent({ rules: ALLOW_ALL, grants: { demo: { scopeList: Object.keys(ANY) } } }),
  );
  beforeEach(() => world.forgive());

  const refused = (request: Parameters<TestAgent['act']>, code: string, words: string) =>
    expectMalformed(world, agent, request, code, words);

  test('a well-formed call is sent (counter-example)', async () => {
    expect((await agent.act(WRITE)).status).toBe(200);
    expect((await agent.act(json('"data":{"a":[{"b":1}]},"headers":{"x-a":"b"},"reason":"why"'))).status).toBe(200);
  });

  test.each([
    ['BD no body at all', '', 'Send a JSON body'],
    ['BD not JSON', '{"platform":', 'the text ends too early'],
    ['BD another JSON value', '[1]', 'body'],
    ['BD null', 'null', 'body'],
    ['BD-01 an unknown member __proto__', json('"__proto__":{"polluted":1}'), '"__proto__"'],
    ['BD-02 400,000 open brackets', json(`"data":{"a":${'['.repeat(400_000)}`), 'nested deeper'],
    ['BD-02 65 levels', json(`"data":${'{"a":'.repeat(64)}1${'}'.repeat(64)}`), 'nested deeper than 64'],
    ['BD-03 1e999', json('"data":{"n":1e999}'), '/data/n'],
    ['BD-03 20 digits', json('"data":{"n":12345678901234567890}'), '/data/n'],
    ['BD-04 a member twice', json('"platform":"other"'), '/platform'],
    ['BD-04 a member of data twice', json('"data":{"a":1,"a":2}'), '/data/a'],
    ['BD-05 NUL in the reason', json('"reason":"a\\u0000b"'), '/reason'],
    ['BD-05 NUL in a header', json('"headers":{"x":"\\u0000"}'), '/headers/x'],
    ['BD-05 NUL in the caller', json('"caller":{"source":"slack","id":"\\u0000"}'), '/caller/id'],
    ['BD-06 a lone surrogate in the reason', json('"reason":"\\ud800"'), '/reason'],
    ['BD-06 a lone surrogate in data', json('"data":{"a":"\\udc00"}'), '/data/a'],
    ['BD-10 data is a list', json('"data":[]'), 'data'],
    ['BD-10 data is a text', json('"data":"x"'), 'data'],
    ['BD-10 data is a number', json('"data":1'), 'data'],
    ['BD-11 an unknown member', json('"Scope":"demo:write"'), '"Scope"'],
    ['BD-11 approved: true', json('"approved":true'), '"approved"'],
    ['BD-13 a reason over 2 KiB', json(`"reason":"${'x'.repeat(2049)}"`), 'reason'],
    [
      'BD-14 a connection_id in braces',
      json('"connection_id":"{a0ee0000-0000-4000-8000-000000000000}"'),
      'connection_id',
    ],
    ['a header whose value is a number', json('"headers":{"a":1}'), 'headers.a'],
    [
      'a caller that is both',
      json('"caller":{"assertion":"x","source":"slack","id":"1"}'),
      'caller: send {"assertion": …}, or {"source": …, "id": …}.',
    ],
    ['a caller that is null', json('"caller":null'), 'caller: send {"assertion": …}, or {"source": …, "id": …}.'],
    ['CA-01 a source with a space', json('"caller":{"source":"a b","id":"1"}'), 'caller'],
    ['CA-08 an empty id', json('"caller":{"source":"slack","id":""}'), 'caller'],
    ['a name of a million characters', json(`"${'n'.repeat(900_000)}":1`), 'unknown field'],
    ['PA-20 NUL in the platform', JSON.stringify({ ...READ, platform: 'demo\0' }), '/platform'],
  ])('%s', async (_name, body, words) => {
    const answer = await refused([body], 'invalid_request', words);
    expect(answer.text.length).toBeLessThan(2_000);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test.each(['platform', 'endpoint', 'method', 'scope'])('%s is missing, empty or of another type', async (name) => {
    for (const value of [undefined, '', 7, null, {}])
      await refused([{ ...READ, [name]: value }], 'invalid_request', name);
  });

  test.each([
    ['text/plain', undefined, 'Content-Type: application/json'],
    ['application/x-www-form-urlencoded', 'a=b', 'Content-Type: application/json'],
    ['application/json; charset=utf-16', undefined, 'UTF-8'],
    ['application/json; charset=latin1', undefined, 'UTF-8'],
  ])('a body of type %s', async (type, body, words) => {
    await refused([body ?? JSON.stringify(READ), { 'content-type': type }], 'invalid_request', words);
  });

  test.each(['utf-8', 'UTF-8', 'utf8', '"utf8"', 'us-ascii'])('charset=%s is accepted', async (charset) => {
    const headers = { 'content-type': `application/json;charset=${charset}` };
    expect((await agent.act(JSON.stringify(READ), headers)).status).toBe(200);
  });

  test.each([
    ['gzip', 'not what its Content-Encoding says'],
    ['br', 'not what its Content-Encoding says'],
    ['x-unknown', 'Content-Encoding of the body is not supported'],
  ])('a body that is not what its Content-Encoding says: %s', async (encoding, words) => {
    await refused([JSON.stringify(READ), { 'content-encoding': encoding }], 'invalid_request', words);
  });

  test('a body that is not UTF-8', async () => {
    const bytes = Buffer.concat([
      Buffer.from(json('"reason":"a').slice(0, -1)),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ]);
    await refused([bytes], 'invalid_request', 'UTF-8');
  });

  test.each(['get', 'HEAD', 'CONNECT', 'TRACE', 'PROPFIND', 'GET\r\nX: y', 'POST '])(
    'PA-17 the method %j',
    async (method) => {
      await refused([{ ...READ, method }], 'invalid_request', 'method');
    },
  );

  test('PA-17 a GET with data', async () => {
    const answer = await refused([{ ...READ, data: { a: 1 } }], 'invalid_request', 'data: a GET carries none');
    expect((await evidenceOf(world, agent, auditIdOf(answer))).row).toMatchObject({
      method: 'GET',
      platform_id: 'demo',
    });
  });

  test.each<[string, Record<string, string>]>([
    ['a line break in a value', { 'x-a': 'a\r\nEvil: 1' }],
    ['\u010a in a value', { 'x-a': '\u010a' }],
    ['é in a value', { 'x-a': 'é' }],
    ['64 KiB', { 'x-a': 'a'.repeat(65_536) }],
    ['a space in a name', { 'a b': 'x' }],
    ['an empty name', { '': 'x' }],
    ['the name __proto__', JSON.parse('{"__proto__":"x"}')],
    ['101 headers', Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, 'a']))],
    ['a name twice', { 'X-A': '1', 'x-a': '2' }],
  ])('HD-09 headers with %s', async (_name, headers) => {
    await refused([{ ...READ, headers }], 'invalid_headers', 'headers');
  });

  test.each([
    ['slack:U1', 'write "jwt'],
    ['id slack', 'write "jwt'],
    ['id Slack:U1', 'source'],
    ['id :U1', 'source'],
    ['id slack:', 'id'],
    [`id slack:${'x'.repeat(257)}`, 'id'],
    [`id ${'s'.repeat(33)}:x`, 'source'],
    ['jwt ', 'write "jwt'],
    ['jwt a b', 'write "jwt'],
    [`jwt ${'x'.repeat(8_193)}`, 'assertion'],
    ['id slack:\xff', 'UTF-8'],
  ])('CA-01 the header X-Svc-Caller: %s', async (value, words) => {
    const answer = await refused([READ, { 'x-svc-caller': value }], 'invalid_request', 'X-Svc-Caller');
    expect(answer.body.detail).toContain(words);
  });

  test('CA-01 an X-Svc-Caller that differs from the body', async () => {
    const caller = { source: 'slack', id: 'U2' };
    await refused([{ ...READ, caller }, { 'x-svc-caller': 'id slack:U1' }], 'invalid_request', 'another caller than');
    await refused([{ ...READ, caller }, { 'x-svc-caller': 'jwt a.b.c' }], 'invalid_request', 'another caller than');
    expect((await agent.act({ ...READ, caller }, { 'x-svc-caller': 'id slack:U2' })).status).toBe(200);
  });

  test('the row of a malformed request contains only the well-formed members of its body', async () => {
    const answer = await refused(
      [json('"nonsense":"SECRET-value","data":{"q":"SECRET-too"}')],
      'invalid_request',
      'nonsense',
    );
    const { row, payload } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(payload).toMatchObject({ platform: 'demo', scope: 'demo:any', method: 'POST', path: null, decision: null });
    expect(JSON.stringify(row)).not.toContain('SECRET');
  });
});
