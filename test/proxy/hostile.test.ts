/**
 * Requests that no client library would send to /proxy: ambiguous framing, upgrades, bodies that differ from their headers, broken streams.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { withoutCalls } from '../world/evidence.ts';
import { FORBIDDEN_HEADERS } from '../world/forbidden-headers.ts';
import { exchange } from '../world/raw.ts';
import { listAuditRows } from '../world/rows.ts';
import { ALLOW_ALL, CANARY, givenWorld, shared, type World } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent({ rules: ALLOW_ALL }));
const port = () => Number(new URL(world.running.baseUrl).port);
const head = (line: string, ...headers: string[]) =>
  [
    line,
    `Host: 127.0.0.1:${port()}`,
    `Authorization: Bearer ${agent.token()}`,
    ...headers,
    'Connection: close',
    '',
    '',
  ].join('\r\n');
const ask = rawClient(() => agent);

describe('ambiguous requests are refused', () => {
  test.each<[string, () => string]>([
    [
      'Content-Length together with Transfer-Encoding',
      () =>
        `${head('POST /proxy/demo-main/items HTTP/1.1', 'Content-Length: 6', 'Transfer-Encoding: chunked')}0\r\n\r\nGET /x`,
    ],
    [
      'two lengths',
      () => `${head('POST /proxy/demo-main/items HTTP/1.1', 'Content-Length: 2', 'Content-Length: 3')}{}x`,
    ],
    ['a length that is no number', () => `${head('POST /proxy/demo-main/items HTTP/1.1', 'Content-Length: +2')}{}`],
    ['another transfer coding', () => `${head('POST /proxy/demo-main/items HTTP/1.1', 'Transfer-Encoding: gzip')}x`],
    [
      'a chunk size that is no number',
      () => `${head('POST /proxy/demo-main/items HTTP/1.1', 'Transfer-Encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`,
    ],
    ['a header that is folded', () => head('GET /proxy/demo-main/items HTTP/1.1', 'X-A: b\r\n c')],
    [
      'a bare line feed',
      () => head('GET /proxy/demo-main/items HTTP/1.1', 'X-A: b\nX-Svc-B: c').replace('\r\n\r\n', '\n\n'),
    ],
    ['the form of a proxy', () => head('GET http://api.example/proxy/demo-main/items HTTP/1.1')],
    ['CONNECT', () => head('CONNECT api.example:443 HTTP/1.1')],
    ['an unknown expectation', () => head('GET /proxy/demo-main/items HTTP/1.1', 'Expect: 200-ok')],
    ['a GET with a body', () => `${head('GET /proxy/demo-main/items HTTP/1.1', 'Content-Length: 2')}{}`],
  ])('%s', async (_, bytes) => {
    const answer = await withoutCalls(world, () => exchange(port(), bytes()));
    expect(answer.status, answer.head).toBeGreaterThanOrEqual(400);
    await world.forgive();
  });

  test('trailers are not forwarded', async () => {
    const bytes = `${head('POST /proxy/demo-main/items HTTP/1.1', 'Transfer-Encoding: chunked', 'Content-Type: application/json', 'Trailer: X-Svc-Reason')}2\r\n{}\r\n0\r\nX-Http-Method-Override: DELETE\r\n\r\n`;
    expect((await exchange(port(), bytes)).status).toBe(200);
    expect(world.upstream.seen.at(-1)).toMatchObject({ body: '{}', method: 'POST' });
    expect(JSON.stringify(world.upstream.seen.at(-1)?.rawHeaders).toLowerCase()).not.toContain('override');
  });

  test('chunk extensions are not forwarded', async () => {
    const chunked = head(
      'POST /proxy/demo-main/items HTTP/1.1',
      'Transfer-Encoding: chunked',
      'Content-Type: application/json',
    );
    const before = world.upstream.seen.length;
    const answer = await exchange(port(), `${chunked}2;a=1;b="0"\r\n{}\r\n0;last\r\n\r\n`);
    expect(answer.status, answer.head).toBe(200);
    expect(world.upstream.seen.slice(before)).toMatchObject([{ method: 'POST', body: '{}' }]);
    expect((await exchange(port(), `${chunked}2;a\n{}\r\n0\r\n\r\n`)).status).toBe(400);
    expect(world.upstream.seen.length).toBe(before + 1);
    await world.forgive();
  });

  test('Expect: 100-continue is answered for an agent, but not for an unauthenticated client', async () => {
    const first = async (line: string) => {
      const socket = connect(port(), '127.0.0.1');
      socket.write(line);
      const got = String((await once(socket, 'data'))[0]).split('\r\n')[0];
      return { socket, got };
    };
    const expecting = head(
      'POST /proxy/demo-main/items HTTP/1.1',
      'Content-Length: 2',
      'Content-Type: application/json',
      'Expect: 100-continue',
    );
    const { socket, got } = await first(expecting);
    expect(got).toBe('HTTP/1.1 100 Continue');
    socket.write('{}');
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
    expect(world.upstream.seen.at(-1)).toMatchObject({ method: 'POST', body: '{}' });
    expect(world.upstream.seen.at(-1)?.headers).not.toHaveProperty('expect');
    const stranger = await first(expecting.replace(/Bearer \S+/, 'Bearer nobody'));
    expect(stranger.got).toContain(' 401 ');
    stranger.socket.destroy();
    await world.forgive();
  });

  test('a connection to an MCP server is refused', async () => {
    const manifest = { kind: 'mcp', scopes: { 'tools:all': ['tool *'] } };
    await organisation.platform({ id: 'tools', manifest: manifest as never });
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { tools: { scopeList: ['tools:all'] } } });
    const before = world.upstream.seen.length;
    for (const path of ['/proxy/tools-main/', '/proxy/tools-main/tools/search']) {
      const answer = await rawClient(() => holder)('POST', path, { body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' });
      expect(answer, answer.text).toMatchObject({ status: 400, body: { detail: expect.stringContaining('/mcp') } });
    }
    expect(world.upstream.seen.length).toBe(before);
    await world.forgive();
  });

  test('an upgrade is refused', async () => {
    const bytes = head('GET /proxy/demo-main/items HTTP/1.1', 'Upgrade: websocket').replace(
      'Connection: close',
      'Connection: Upgrade, close',
    );
    const answer = await expectStatus(501, exchange(port(), bytes));
    expect(answer.body).toContain('not_implemented');
  });
});

describe('headers', () => {
  /** Headers that /proxy reads itself: framing, authentication, and those of browsers, which are refused. */
  const READ_HERE =
    /^(?:host|authorization|connection|transfer-encoding|content-length|content-encoding|expect|cookie)$/i;
  const FORBIDDEN = Object.entries(FORBIDDEN_HEADERS).filter(([name]) => !READ_HERE.test(name));

  test('HD-01 to HD-08 headers that no agent may set are not forwarded, even when the manifest names them', async () => {
    const client_headers = ['x-*', 'private-token', 'proxy-*', 'keep-alive', 'te', 'forwarded', 'via'];
    await organisation.platform({ id: 'open', manifest: { client_headers } });
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { open: {} } });
    expect(FORBIDDEN.length).toBeGreaterThan(10);
    for (const [name, value] of FORBIDDEN) {
      const headers = { [name]: value, 'x-kept': 'kept' };
      const answer = await rawClient(() => holder)('GET', '/proxy/open-main/items', { headers });
      expect(answer.status, name).toBe(200);
      const { headers: sent = {} } = world.upstream.seen.at(-1) ?? {};
      expect(sent['x-kept'], name).toBe('kept');
      expect(sent, name).not.toHaveProperty(name.toLowerCase());
    }
  });

  test.each(['cookie2', 'x-real-ip', 'x-anything'])('%s is not forwarded', async (name) => {
    const answer = await expectStatus(200, ask('GET', '/proxy/demo-main/items', { headers: { [name]: 'x' } }));
    expect(world.upstream.seen.at(-1)?.headers).not.toHaveProperty(name);
    expect(answer.headers.get('x-svc-dropped-headers')).toBe(name);
  });

  test('the answer lists headers that were not forwarded, except those that every client sends, at most twenty names', async () => {
    const usual = { 'user-agent': 'a client', 'accept-encoding': 'gzip', 'x-svc-wait': '1', 'if-none-match': '"x"' };
    const { headers } = await ask('GET', '/proxy/demo-main/items', { headers: usual });
    expect(headers.get('x-svc-dropped-headers')).toBeNull();
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`x-own-${i}`, 'x']));
    const told = await ask('GET', '/proxy/demo-main/items', { headers: { ...usual, ...many } });
    expect(told.headers.get('x-svc-dropped-headers')).toBe(Object.keys(many).slice(0, 20).join(', '));
  });

  test('headers that a manifest names are forwarded, and never those that it forbids', async () => {
    await organisation.platform({
      id: 'named',
      manifest: { client_headers: ['x-goog-*', 'demo-version'], forbidden_headers: ['x-goog-user'] },
    });
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { named: {} } });
    const headers = {
      'demo-version': '3',
      'x-goog-field': 'a',
      'x-goog-user': 'b',
      range: 'bytes=0-1',
      'if-none-match': '"x"',
    };
    const { headers: answered } = await rawClient(() => holder)('GET', '/proxy/named-main/items', { headers });
    expect(answered.get('x-svc-dropped-headers')).toBeNull();
    const { headers: sent } = world.upstream.seen.at(-1) ?? { headers: {} };
    expect(sent).toMatchObject({
      'demo-version': '3',
      'x-goog-field': 'a',
      range: 'bytes=0-1',
      'if-none-match': '"x"',
    });
    expect(sent).not.toHaveProperty('x-goog-user');
  });
});

describe('bodies', () => {
  beforeAll(() => organisation.platform({ id: 'forms', manifest: { raw_bodies: ['json', 'form'] } }));
  const FORM = 'application/x-www-form-urlencoded';

  /** A form, to a platform that accepts forms unless `platform` differs. */
  const write = (
    body: string | Buffer,
    type: string,
    rules: readonly unknown[],
    coding?: string,
    to = type.startsWith(FORM) ? 'forms' : 'demo',
  ) =>
    organisation.agent({ rules, grants: { [to]: {} } }).then((by) =>
      rawClient(() => by)('POST', `/proxy/${to}-main/items`, {
        body,
        headers: { 'content-type': type, ...(coding !== undefined && { 'content-encoding': coding }) },
      }),
    );
  const NO_MORE = [{ effect: 'allow' }, { effect: 'deny', when: 'has(request.body.to) && request.body.to != "ann"' }];

  test.each<[string, string, string]>([
    ['as a text', '{"to":"eve"}', 'text/plain'],
    ['as bytes', '{"to":"eve"}', 'application/octet-stream'],
    [
      'in parts',
      '--x\r\ncontent-disposition: form-data; name="to"\r\n\r\neve\r\n--x--\r\n',
      'multipart/form-data; boundary=x',
    ],
    ['in another charset, which may change it', '{"to":"ann"}', 'application/json; charset=iso-8859-2'],
    ['in a list', '[{"to":"eve"}]', 'application/json'],
    ['without a type', '{"to":"eve"}', ' '],
    ['by the first of two types', '{"to":"eve"}', 'application/json, text/plain'],
    ['by a type up to a blank', '{"to":"eve"}', 'application/json x'],
    ['in a form by the first of two types', 'to=eve', 'application/x-www-form-urlencoded, text/plain'],
    [
      'in parts after a boundary that Rack ends at its comma',
      '--b,c\r\ncontent-disposition: form-data; name="x"\r\n\r\n\r\n--b\r\ncontent-disposition: form-data; name="to"\r\n\r\neve\r\n--b--\r\n\r\n--b,c--\r\n',
      'multipart/form-data; boundary="b,c"',
    ],
    ['in a form', 'to=eve', 'application/x-www-form-urlencoded'],
    ['twice in a form', 'to=ann&to=eve', 'application/x-www-form-urlencoded'],
    ['in a form, with stray brackets', 'to=ann&to[=eve', 'application/x-www-form-urlencoded'],
    ['in a form, after a semicolon', 'to=ann&x=1;to=eve', 'application/x-www-form-urlencoded'],
    ['in a form, with an escape of ASP.NET', 'to=ann&%u0074o=eve', 'application/x-www-form-urlencoded'],
    ['in a form, with an overlong letter', 'to=ann&%C1%B4o=eve', 'application/x-www-form-urlencoded'],
    ['in another spelling', '{"To":"eve"}', 'application/json'],
    ['in two spellings', '{"to":"ann","TO":"eve"}', 'application/json'],
    ['with two charsets', '{"to":"ann"}', 'application/json; charset=utf-8; charset=windows-1252'],
  ])('a deny rule is not bypassed with a value %s', async (_, body, type) => {
    expect(await withoutCalls(world, () => write(body, type, NO_MORE))).toMatchObject({
      status: 403,
      body: { error: 'denied_by_policy' },
    });
  });

  test.each([
    ['in front of JSON, in a comment', '/*&to=ann&x=*/{"to":"eve"}'],
    ['in front of a list, in a comment', '/*&to=ann&x=*/[{"to":"eve"}]'],
    ['in front of JSON, in a line of comment', '//&to=ann\n{"to":"eve"}'],
    ['alone', 'to=ann'],
  ])('a form sent to a JSON platform is not read: %s', async (_, body) => {
    const denied = await withoutCalls(world, () => write(body, FORM, NO_MORE, undefined, 'demo'));
    expect(denied).toMatchObject({ status: 403, body: { error: 'denied_by_policy' } });
    expect((await write(body, FORM, ALLOW_ALL, undefined, 'demo')).status).toBe(200);
    expect(world.upstream.seen.at(-1)?.body).toBe(body);
  });

  test('a deny rule is not bypassed with a value in the query', async () => {
    const by = await organisation.agent({ rules: NO_MORE });
    const answer = await withoutCalls(world, () =>
      rawClient(() => by)('POST', '/proxy/demo-main/items?to=eve', { body: '{"text":"x"}' }),
    );
    expect(answer).toMatchObject({ status: 403, body: { error: 'denied_by_policy' } });
  });

  // Platforms that accept only JSON read these as JSON whatever their type; as a form each would be `branch=agent/x`, or have no relevant
  // member.
  test.each([
    ['JSON as a form', '{"to":"eve"}'],
    ['JSON with a form in it', '{"branch":"main","x":"&branch=agent/x&y="}'],
    ['a list', '[{"to":"eve"}]'],
    ['JSON after blanks', ' \r\n\t{"to":"eve"}'],
    ['JSON after a byte order mark', '\uFEFF{"to":"eve"}'],
  ])('%s with the type of a form answers 400 with advice', async (_, body) => {
    const answer = await withoutCalls(world, () =>
      write(body, 'application/x-www-form-urlencoded', [{ effect: 'allow' }]),
    );
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect(answer.body.detail).toContain('Send Content-Type: application/json');
  });

  test.each([
    ['application/json', Buffer.from('{"to":"ann","\xC1\xB7o":"eve"}', 'latin1')],
    ['application/json', Buffer.from('{"to":"\xFF"}', 'latin1')],
    ['application/x-www-form-urlencoded', Buffer.from('to=ann&\xC1\xB4o=eve', 'latin1')],
  ])('a body of %s that is not UTF-8 answers 400', async (type, body) => {
    const answer = await withoutCalls(world, () => write(body, type, [{ effect: 'allow' }]));
    expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    expect(answer.body.detail).toContain('not UTF-8');
  });

  const LONG = 'y'.repeat(1_100_000);
  const CODINGS = {
    gzip: (text: string) => gzipSync(text, { level: 0 }),
    deflate: (text: string) => deflateSync(text, { level: 0 }),
    br: (text: string) => brotliCompressSync(text),
    zstd: (text: string) => zstdCompressSync(text),
    'identity, gzip': (text: string) => gzipSync(text, { level: 0 }),
    compress: (text: string) => Buffer.from(text),
    GZIP: (text: string) => gzipSync(text),
  };
  describe.each(Object.entries(CODINGS))(
    'a body with the Content-Encoding %s, which cannot be searched for a method',
    (coding, code) => {
      test.each([
        ['a form', 'application/x-www-form-urlencoded', `_method=DELETE&x=`],
        [
          'parts',
          'multipart/form-data; boundary=b',
          '--b\r\ncontent-disposition: form-data; name="_method"\r\n\r\nDELETE',
        ],
        ['a form without a type', ' ', '_method=DELETE&x='],
        ['JSON', 'application/json', '{"_method":"DELETE","x":"'],
        ['JSON by its ending', 'application/vnd.api+json; charset=utf-8', '{"_method":"DELETE","x":"'],
        ['JSON as Laravel looks for it', 'text/plain; a=/json', '{"_method":"DELETE","x":"'],
      ])('%s answers 400 with advice', async (_, type, begin) => {
        const before = world.upstream.seen.length;
        for (const text of [begin, begin + LONG]) {
          const answer = await write(code(text), type, ALLOW_ALL, coding);
          expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
          expect(answer.body.detail).toMatch(
            /^(?:A form|JSON) is accepted only without a Content-Encoding.* Send it unencoded|^JSON in gzip is accepted up to 1024 KiB|^The body is not JSON/,
          );
        }
        expect(world.upstream.seen.length).toBe(before);
      });
    },
  );

  describe('JSON in gzip', () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const rule = (when: string) => [{ effect: 'allow', when }];

    test('is unzipped, decided by its content, and sent without the encoding', async () => {
      const sent = await write(gzipSync('{"to":"ann"}'), 'application/json', rule('request.body.to == "ann"'), 'gzip');
      expect(sent.status, JSON.stringify(sent.body)).toBe(200);
      const { body, headers: given } = world.upstream.seen.at(-1)!;
      expect([body, given['content-length'], given['content-encoding']]).toEqual(['{"to":"ann"}', '12', undefined]);
      const other = await write(gzipSync('{"to":"eve"}'), 'application/json', rule('request.body.to == "ann"'), 'gzip');
      expect([other.status, other.body.reason]).toEqual([403, 'denied_by_policy']);
    });

    test.each([
      ['that names a method', gzipSync('{"_method":"DELETE"}'), '_method'],
      ['that is none', Buffer.from('{"a":1}'), 'not what its Content-Encoding says'],
      ['that is cut', gzipSync('{"a":1}').subarray(0, -9), 'not what its Content-Encoding says'],
      ['that is too long', gzipSync(JSON.stringify(LONG)), 'accepted up to 1024 KiB without the encoding'],
      ['with a name twice', gzipSync('{"a":1,"a":2}'), 'there twice'],
    ])('%s answers 400', async (_name, body, said) => {
      const answer = await withoutCalls(world, () => write(body, 'application/json', ALLOW_ALL, 'gzip'));
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
      expect(answer.body.detail).toContain(said);
    });

    test('of a PATCH as well', async () => {
      const by = await organisation.agent({ rules: ALLOW_ALL });
      const body = gzipSync('{"a":1}');
      expect((await rawClient(() => by)('PATCH', '/proxy/demo-main/items/1', { body, headers })).status).toBe(200);
    });
  });

  test.each(['PATCH', 'PUT', 'DELETE'])('a %s with JSON in another encoding is refused as well', async (method) => {
    const by = await organisation.agent({ rules: ALLOW_ALL });
    const headers = { 'content-type': 'application/json', 'content-encoding': 'deflate' };
    const answer = await rawClient(() => by)(method, '/proxy/demo-main/items/1', {
      body: deflateSync('{"a":1}'),
      headers,
    });
    expect(answer).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('without a Content-Encoding') },
    });
  });

  test.each(['application/octet-stream', 'text/csv', 'application/gzip', 'application/x-protobuf'])(
    'a body of %s with a Content-Encoding is sent unchanged',
    async (type) => {
      const bytes = gzipSync(LONG, { level: 0 });
      for (const body of [gzipSync('a'), bytes]) expect((await write(body, type, ALLOW_ALL, 'gzip')).status).toBe(200);
      expect(world.upstream.seen.at(-1)?.headers).toMatchObject({ 'content-encoding': 'gzip' });
      expect(Number(world.upstream.seen.at(-1)?.headers['content-length'])).toBe(bytes.length);
    },
  );

  test('a file that an operation stores by PUT may be encoded JSON, such as S3 objects', async () => {
    const bodies = { 'PUT /items/*': ['json', 'text', 'bytes'], 'POST /items': ['json', 'bytes'] };
    const scopes = { 'demo:write': ['PUT /**', 'POST /**'] };
    await organisation.platform({ id: 'store', manifest: { bodies, scopes } as never });
    const by = rawClient(() => holder);
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { store: { scopeList: ['demo:write'] } } });
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    for (const body of [gzipSync('{"a":1}'), gzipSync(`{"a":"${LONG}"}`, { level: 0 })]) {
      await expectStatus(200, by('PUT', '/proxy/store-main/items/a?x=1', { body, headers }));
      expect(world.upstream.seen.at(-1)?.headers).toMatchObject(headers);
      expect((await by('POST', '/proxy/store-main/items', { body, headers })).status).toBe(400);
      expect((await by('PUT', '/proxy/store-main/other/a', { body, headers })).status).toBe(400);
    }
    // In another charset as well, through both entry points.
    const type = { 'content-type': 'application/json; charset=utf-16' };
    const bytes = Buffer.from('{"a":1}', 'utf16le');
    expect((await by('PUT', '/proxy/store-main/items/a', { body: bytes, headers: type })).status).toBe(200);
    const call = { platform: 'store', endpoint: '/items/a', method: 'PUT', scope: 'demo:write', headers: type };
    await expectStatus(200, holder.act({ ...call, data: bytes.toString('base64'), encoding: 'base64' }));
    const form = { 'content-type': 'application/x-www-form-urlencoded', 'content-encoding': 'gzip' };
    expect((await by('PUT', '/proxy/store-main/items/a', { body: gzipSync('a=1'), headers: form })).status).toBe(400);
  });

  test('a file with the type of JSON is sent by POST where an operation accepts nothing but files, and names no method', async () => {
    const manifest = {
      bodies: { 'POST /files': 'bytes' },
      scopes: { 'demo:write': ['POST /**'] },
      refused_parameters: ['sudo'],
      client_headers: ['x-goog-upload-*'],
    };
    await organisation.platform({ id: 'uploads', manifest: manifest as never });
    const grants = { uploads: { scopeList: ['demo:write'] } };
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants });
    const headers = { 'content-type': 'application/json', 'x-goog-upload-command': 'upload, finalize' };
    const post = (by: TestAgent, body: string | Buffer, path = '/files?upload_id=7') =>
      rawClient(() => by)('POST', `/proxy/uploads-main${path}`, { body, headers });
    for (const body of ['plain text', '{"a":1,"a":2}', Buffer.from([0x89, 0x50, 0xff, 0]), '{"file":{}}']) {
      await expectStatus(200, post(holder, body));
      const { headers: sent, body: got } = world.upstream.seen.at(-1)!;
      expect([sent['x-goog-upload-command'], got]).toEqual(['upload, finalize', String(body)]);
    }
    const before = world.upstream.seen.length;
    for (const [body, reason] of [
      ['{"_method":"DELETE"} //', 'names a method'],
      ['{"a":1,"sudo":1,"a":2}', 'accepts it from no agent'],
    ] as const) {
      const refused = await post(holder, body);
      expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(reason)]);
    }
    expect((await post(holder, 'plain text', '/other')).status).toBe(400);
    // Its content is unknown to rules.
    const rules = [{ effect: 'deny', when: 'has(request.body.a)' }, ...ALLOW_ALL];
    const limited = await organisation.agent({ rules, grants });
    expect((await post(limited, 'plain text')).status).toBe(403);
    expect((await post(limited, '{"b":1}')).status).toBe(200);
    expect(world.upstream.seen.length).toBe(before + 1);
  });

  test('a file that an operation stores by PUT may be any JSON, through both entry points, unless the platform refuses fields', async () => {
    const bodies = { 'PUT /items/*': ['json', 'text', 'bytes'], 'POST /items': ['json', 'bytes'] };
    const scopes = { 'demo:write': ['PUT /**', 'POST /**'] };
    await organisation.platform({ id: 'keeps', manifest: { bodies, scopes } as never });
    const refused_parameters = ['sudo'];
    await organisation.platform({ id: 'minds', manifest: { bodies, scopes, refused_parameters } as never });
    const grant = { scopeList: ['demo:write'] };
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { keeps: grant, minds: grant } });
    const by = rawClient(() => holder);
    const headers = { 'content-type': 'application/json' };
    const named = `{"_method":"DELETE","a":"${LONG}"}`;
    const refusals: [body: string | Buffer, status: number, reason: string][] = [
      ['{ "a": 1 } // of a person', 400, 'something follows the value'],
      ['{"a":1,"a":2}', 400, '/a: this member name is there twice'],
      ['{"_method":"DELETE"}', 400, 'names a method ("_method")'],
      // When the name is found, the beginning has already been sent.
      [named, 502, 'names a method in one of its fields, and was not sent completely'],
      [Buffer.from([0x22, 0xff, 0x22]), 400, 'is not UTF-8'],
    ];
    for (const [body, status, reason] of refusals) {
      await expectStatus(200, by('PUT', '/proxy/keeps-main/items/a', { body, headers }));
      const call = { platform: 'keeps', endpoint: '/items/a', method: 'PUT', scope: 'demo:write', headers };
      if (body !== named) {
        const kept = await holder.act({ ...call, data: Buffer.from(body).toString('base64'), encoding: 'base64' });
        expect(kept.status, kept.text).toBe(200);
      }
      // When it is not a file, the platform may parse it.
      for (const [method, path] of [
        ['POST', '/proxy/keeps-main/items'],
        ['PUT', '/proxy/keeps-main/other/a'],
      ] as const) {
        const refused = await by(method, path, { body, headers });
        expect(JSON.parse(refused.text)).toMatchObject({ status, detail: expect.stringContaining(reason) });
        expect(refused.status).toBe(status);
      }
    }
    const object = {
      platform: 'keeps',
      endpoint: '/items/a',
      method: 'PUT',
      scope: 'demo:write',
      data: { _method: 'PUT' },
    };
    expect((await holder.act(object)).status).toBe(200);
    expect(await holder.act({ ...object, endpoint: '/other/a' })).toMatchObject({
      ...{ status: 400, body: { detail: expect.stringContaining('names a method ("_method")') } },
    });
    for (const [body, reason] of [
      ['{"sudo":1}', 'names "sudo"'],
      ['{"_method":"DELETE"}', 'names a method ("_method")'],
      ['{"a":1,"a":2}', '/a: this member name is there twice'],
    ] as const) {
      const refused = await by('PUT', '/proxy/minds-main/items/a', { body, headers });
      expect([refused.status, refused.text]).toEqual([
        400,
        expect.stringContaining(JSON.stringify(reason).slice(1, -1)),
      ]);
    }
  });

  test.each([
    'application/json; charset=utf-16',
    'application/json; charset=utf-7',
    'application/json; charset =utf-7',
    'application/json; charset=utf-8; charset=utf-7',
    "application/json; charset*=us-ascii'en'utf-7",
    'application/json; charset=ibm037',
  ])('JSON with the type %s answers 400, because its letters may be other bytes', async (type) => {
    const answer = await withoutCalls(world, () => write('{"to":"ann"}', type, ALLOW_ALL));
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining('extends ASCII') } });
  });

  test.each(['ibm037', 'utf-16', 'utf-7', 'utf-8; charset=ibm037'])(
    'a form in %s answers 400, because its letters are other bytes in that charset',
    async (charset) => {
      const before = world.upstream.seen.length;
      const ibm037 = Buffer.from('6d9485a38896847ec4c5d3c5e3c5', 'hex');
      for (const long of [Buffer.alloc(0), Buffer.alloc(1_100_000, 'x')]) {
        const body = Buffer.concat([ibm037, long]);
        const answer = await write(body, `application/x-www-form-urlencoded; charset=${charset}`, ALLOW_ALL);
        expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
        expect(answer.body.detail).toContain('extends ASCII');
      }
      expect(world.upstream.seen.length).toBe(before);
    },
  );

  test.each(['ISO-8859-1', '"UTF-8"', 'windows-1252'])('a form in %s is sent', async (charset) => {
    const type = `application/x-www-form-urlencoded; charset=${charset}`;
    expect((await write('a=%E4', type, ALLOW_ALL)).status).toBe(200);
  });

  test.each(['to=ann', 'to=ann&a%5Bb%5D=1&c%5B%5D=x', 'to=ann&x=%3B%7B%22to%22'])(
    'a body that the rule allows is sent: %s',
    async (body) => {
      expect((await write(body, 'application/x-www-form-urlencoded', NO_MORE)).status).toBe(200);
    },
  );

  test('JSON that two parsers read differently is refused', async () => {
    expect(await write('{"to":"ann","to":"eve"}', 'application/json', NO_MORE)).toMatchObject({ status: 400 });
  });

  const part = (head: string, content: string) => `--b\r\n${head}\r\n\r\n${content}\r\n--b--\r\n`;
  const PARTS = 'multipart/form-data; boundary=b';
  test.each([
    ['a form', '_method=DELETE', 'application/x-www-form-urlencoded'],
    ['a form that is not read', 'a=1&a=2&_METHOD=DELETE', 'application/x-www-form-urlencoded'],
    ['a part', part('Content-Disposition: form-data; name="_method"', 'DELETE'), PARTS],
    ['a part without quotes', part('content-disposition:form-data;name=_method', 'DELETE'), PARTS],
    ['a part with escapes', part('Content-Disposition: form-data; name="_m\\ethod"', 'DELETE'), PARTS],
    ['a part with an encoded name', part("Content-Disposition: form-data; name*=utf-8''%5Fmethod", 'DELETE'), PARTS],
    ['a part with a folded line', part('Content-Disposition: form-data;\r\n name="_method"', 'DELETE'), PARTS],
    ['a part with bare line ends', '--b\nContent-Disposition: form-data; name="_method"\n\nDELETE\n--b--\n', PARTS],
    [
      'a part after a quoted boundary',
      part('Content-Disposition: form-data; name="_method"', 'DELETE'),
      'multipart/form-data; boundary="b"',
    ],
    ['a form with semicolons', 'a=1;_method=DELETE', 'application/x-www-form-urlencoded'],
    [
      'a part after one of two boundaries',
      part('Content-Disposition: form-data; name="_method"', 'DELETE'),
      'multipart/form-data; boundary=a; boundary=b',
    ],
    ['a form without a type, as Rack reads it', '_method=DELETE', ' '],
    [
      'a form by the first of two types, as PHP and Rack read it',
      '_method=DELETE',
      'application/x-www-form-urlencoded, text/plain',
    ],
    ['a form by its type up to a blank, as PHP reads it', '_method=DELETE', 'application/x-www-form-urlencoded x'],
    ['a name with an escape of ASP.NET', 'a=1&X-HTTP-%u004dethod-Override=DELETE', 'application/x-www-form-urlencoded'],
    ['a name that PHP ends at a NUL', '_method%00x=DELETE', 'application/x-www-form-urlencoded'],
    [
      'a part by the first of two types',
      part('Content-Disposition: form-data; name="_method"', 'DELETE'),
      `${PARTS}, text/plain`,
    ],
    [
      'a part after a boundary that Rack and PHP end at a comma',
      part('Content-Disposition: form-data; name="_method"', 'DELETE'),
      'multipart/form-data; boundary=b,c',
    ],
    [
      'a part after a boundary that Rack ends at a comma in quotes',
      part('Content-Disposition: form-data; name="_method"', 'DELETE'),
      'multipart/form-data; boundary="b,c"',
    ],
    [
      'a part after a parameter that PHP takes for the boundary',
      part('Content-Disposition: form-data; name="_method"', 'DELETE'),
      'multipart/form-data; xboundary=b; boundary=c',
    ],
    [
      'JSON of another charset, which Laravel reads as UTF-8',
      '{"_method":"DELETE"}',
      'application/json; charset=iso-8859-1',
    ],
    ['JSON by a type that contains the word, as Laravel checks', '{"_method":"DELETE"}', 'text/plain; a=/json'],
    ['JSON with an escaped name', '{"a":{"b":["}"]},"_meth\\u006fd":"delete"}', 'text/plain, application/json'],
  ])('HD-06 %s that names another method is refused', async (_, body, type) => {
    const answer = await withoutCalls(world, () => write(body, type, ALLOW_ALL));
    expect(answer).toMatchObject({ status: 400, body: { detail: expect.stringContaining('names a method') } });
  });

  const PADDING = 'x'.repeat(2 * 1024 * 1024);
  test.each([
    ['a form', `a=${PADDING}&_method=DELETE&b=1`, 'application/x-www-form-urlencoded'],
    [
      'a part',
      `--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n${PADDING}\r\n${part('Content-Disposition: form-data; name="_method"', 'DELETE')}`,
      PARTS,
    ],
    ['a form without a type', `a=${PADDING}&_method=DELETE&b=1`, ' '],
    ['JSON', `{"a":"${PADDING}","_method":"DELETE","b":1}`, 'application/json'],
    ['JSON that names it first', `{"_method":"DELETE","a":"${PADDING}"}`, 'application/json'],
  ])('%s that is too long to be judged is cut off where it names another method', async (_, body, type) => {
    const before = world.upstream.seen.length;
    const answer = await write(body, type, ALLOW_ALL);
    expect(answer).toMatchObject({ status: 502, body: { detail: expect.stringContaining('names a method') } });
    // The part that was sent is incomplete, so no platform treats it as a request.
    expect(world.upstream.seen.length).toBe(before);
    const [row] = await listAuditRows(world.db, organisation.id, { limit: 1 });
    expect(row).toMatchObject({ kind: 'action', result: 'errored' });
  });

  test.each([
    ['a form', `a=${PADDING}&method=DELETE&b=1`, 'application/x-www-form-urlencoded'],
    ['a file', part('Content-Disposition: form-data; name="a"; filename="a"', `${PADDING}; name="_method"`), PARTS],
    [
      'JSON',
      `{"a":"${PADDING}","_method":"card","b":{"_method":"DELETE"},"c":["_method","DELETE"]}`,
      'application/json',
    ],
    ['a file without a form', `$_method = "DELETE"; &_method=DELETE&${PADDING}`, 'application/octet-stream'],
  ])('%s that is too long to be judged is sent when it names no method', async (_, body, type) => {
    expect((await write(body, type, ALLOW_ALL)).status).toBe(200);
    expect(world.upstream.seen.at(-1)?.body).toBe(body);
  });

  test('a file may contain the name of a method', async () => {
    const page = '<form><input name="_method" value="DELETE"></form>';
    const body = part('Content-Disposition: form-data; name="page"; filename="a.html"', page);
    expect(await write(body, PARTS, ALLOW_ALL)).toMatchObject({ status: 200 });
  });

  describe('a GraphQL mutation is not accepted as a query', () => {
    let reader: TestAgent;
    beforeAll(async () => {
      const scopes = { 'graph:read': ['query *'], 'graph:write': ['mutation *'] };
      await organisation.platform({ id: 'graph', manifest: { kind: 'graphql', scopes } });
      reader = await organisation.agent({ rules: ALLOW_ALL, grants: { graph: { scopeList: ['graph:read'] } } });
    });
    const post = (body: string | Buffer, headers: Record<string, string> = {}, query = '') =>
      rawClient(() => reader)('POST', `/proxy/graph-main${query}`, {
        body,
        headers: { 'content-type': 'application/json', ...headers },
      });
    const READS = '{"query":"{ viewer { id } }"}';
    const WRITES = '{"query":"mutation { wipe }"}';

    test('a query is sent (counter-example)', async () => {
      expect((await post(READS)).status).toBe(200);
      expect((await post(WRITES)).status).toBe(403);
    });

    test.each<[string, string | Buffer, Record<string, string>?, string?]>([
      ['as the document alone', 'mutation { wipe }', { 'content-type': 'application/graphql' }],
      ['in a form', 'query=mutation%7Bwipe%7D', { 'content-type': 'application/x-www-form-urlencoded' }],
      ['in a list', `[${READS},${WRITES}]`],
      ['in a text', WRITES, { 'content-type': 'text/plain' }],
      ['without a type', WRITES, { 'content-type': ' ' }],
      ['by the first of two types', WRITES, { 'content-type': 'application/json, text/plain' }],
      ['in another charset', Buffer.from(WRITES, 'utf16le'), { 'content-type': 'application/json; charset=utf-16' }],
      ['in a coding', gzipSync(WRITES), { 'content-encoding': 'gzip' }],
      ['after a byte order mark', `\uFEFF${WRITES}`],
      ['twice', '{"query":"{ viewer { id } }","query":"mutation { wipe }"}'],
      ['in the query, too', READS, {}, '?query=mutation%7Bwipe%7D'],
      ['by its hash', '{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ab"}}}'],
      [
        'in parts',
        '--b\r\ncontent-disposition: form-data; name="operations"\r\n\r\n{"query":"mutation { wipe }"}\r\n--b--\r\n',
        { 'content-type': 'multipart/form-data; boundary=b' },
      ],
      ['in a long body', `{"query":"{ viewer { id } }${' '.repeat(1_100_000)}"}`],
    ])('%s', async (_, body, headers, query) => {
      const { status } = await withoutCalls(world, () => post(body, headers, query));
      expect([400, 403, 413]).toContain(status);
      await world.forgive();
    });

    test('through a GET', async () => {
      await withoutCalls(world, () =>
        expectStatus(403, rawClient(() => reader)('GET', '/proxy/graph-main?query=mutation%7Bwipe%7D')),
      );
    });
  });

  test('a body that breaks off is not sent, and is recorded', async () => {
    const before = world.upstream.seen.length;
    const socket = connect(port(), '127.0.0.1');
    const leaver = await organisation.agent({ rules: ALLOW_ALL, name: 'leaver' });
    socket.write(
      `POST /proxy/demo-main/items HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nAuthorization: Bearer ${leaver.token()}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"a":`,
    );
    await once(socket, 'connect');
    const mine = async () =>
      (await listAuditRows(world.db, organisation.id, { limit: 20 })).filter((row) => row.agent_id === leaver.id);
    setTimeout(() => socket.destroy(), 50);
    await expect
      .poll(mine, { timeout: 5_000 })
      .toMatchObject([{ state: 'final', result: 'errored', reason: 'request_cut' }]);
    expect(world.upstream.seen.length).toBe(before);
  });
});

describe('answers', () => {
  const answering = async (answer: NonNullable<World['upstream']['answer']>, headers: Record<string, string> = {}) => {
    world.upstream.answer = answer;
    try {
      return await ask('GET', '/proxy/demo-main/items', { headers });
    } finally {
      world.upstream.answer = undefined;
    }
  };

  test('the credential is redacted across pieces of a stream', async () => {
    const answer = await answering((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const half = Math.floor(CANARY.length / 2);
      response.write(`data: ${CANARY.slice(0, half)}`);
      setTimeout(() => response.end(`${CANARY.slice(half)}\n\n`), 30);
    });
    expect(answer.text).not.toContain(CANARY);
    expect(answer.text).toMatch(/^data: .+\n\n$/);
  });

  test('an answer that breaks off is not taken for complete, and its row says so', async () => {
    const broken = answering((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      setTimeout(() => response.destroy(), 30);
    });
    await expect(broken).rejects.toThrow();
    const rows = async () =>
      (await listAuditRows(world.db, organisation.id, { limit: 20 })).filter((row) => row.agent_id === agent.id);
    await expect.poll(async () => (await rows()).at(0)?.flags).toContain('"ended":"upstream_closed"');
  });

  test('an answer in a transfer coding, in which the credential could not be found, is not passed on', async () => {
    const coded = (coding: string, bytes: Buffer) =>
      answering((_, response) => {
        response.writeHead(200, { 'content-type': 'application/octet-stream', 'transfer-encoding': coding });
        response.end(bytes);
      });
    expect(await coded('chunked', gzipSync('no credential'))).toMatchObject({ status: 200 });
    expect(await coded('gzip, chunked', gzipSync(`key=${CANARY}`))).toMatchObject({
      status: 502,
      body: { error: 'upstream_unreachable' },
    });
  });

  test('a partial answer is passed on as partial', async () => {
    const answer = await answering(({ headers }, response) => {
      response.writeHead(206, {
        'content-range': 'bytes 0-3/10',
        'accept-ranges': 'bytes',
        'content-type': 'text/plain',
      });
      response.end(headers.range === undefined ? 'none' : 'part');
    });
    expect([answer.status, answer.headers.get('content-range'), answer.text]).toEqual([206, 'bytes 0-3/10', 'none']);
  });

  test('a client that stops reading stops the platform, and the row says that the client left', async () => {
    let written = 0;
    const sending = Promise.withResolvers<void>();
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'application/octet-stream' });
      const piece = Buffer.alloc(256 * 1024, 'x');
      const go = () => {
        while (!response.destroyed && written < 512 * 1024 * 1024) {
          written += piece.length;
          if (!response.write(piece)) return void response.once('drain', go);
        }
      };
      response.on('close', () => sending.resolve());
      go();
    };
    const reader = await organisation.agent({ rules: ALLOW_ALL, name: 'stopped' });
    const socket = connect(port(), '127.0.0.1');
    socket.write(
      `GET /proxy/demo-main/items HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nAuthorization: Bearer ${reader.token()}\r\n\r\n`,
    );
    await once(socket, 'readable');
    let before = -1;
    await expect
      .poll(
        () => {
          const stands = written === before;
          before = written;
          return stands;
        },
        { timeout: 10_000, interval: 300 },
      )
      .toBe(true);
    expect(written).toBeLessThan(64 * 1024 * 1024);
    socket.destroy();
    await sending.promise;
    world.upstream.answer = undefined;
    const rows = async () =>
      (await listAuditRows(world.db, organisation.id, { limit: 20 })).filter((row) => row.agent_id === reader.id);
    await expect.poll(async () => (await rows()).at(0)?.flags, { timeout: 5_000 }).toContain('"ended":"client_closed"');
  });

  test('a redirect to the platform leads through the broker; any other loses its query and fragment', async () => {
    const to = async (location: string) =>
      (await answering((_, response) => response.writeHead(302, { location }).end())).headers.get('location');
    const proxyUrl = `${agent.baseUrl}/proxy/demo-main`;
    expect(await to('/v1/items/2?a=b')).toBe(`${proxyUrl}/items/2?a=b`);
    expect(await to(`${world.upstream.url}/v1/items/3`)).toBe(`${proxyUrl}/items/3`);
    expect(await to(`${world.upstream.url}/v2/items`)).toBe(`${world.upstream.url}/v2/items`);
    expect(await to('https://files.example/a?X-Amz-Signature=secret')).toBe('https://files.example/a');
    expect(await to('https://app.example/back#access_token=secret')).toBe('https://app.example/back');
  });

  test('a URL of the platform in any other header leads through the broker, too, and all other values stay', async () => {
    const sent = {
      'x-goog-upload-url': `${world.upstream.url}/v1/upload?upload_id=U1&upload_protocol=resumable`,
      'operation-location': `${world.upstream.url}/v2/operations/7`,
      'x-docs': 'https://docs.example/items?page=2',
      'x-text': `see ${world.upstream.url}/v1/items`,
      'x-many': `${world.upstream.url}/v1/a ${world.upstream.url}/v1/b`,
    };
    const answered = await answering((_, response) => response.writeHead(200, sent).end());
    const proxyUrl = `${agent.baseUrl}/proxy/demo-main`;
    expect(Object.fromEntries(answered.headers)).toMatchObject({
      ...sent,
      'x-goog-upload-url': `${proxyUrl}/upload?upload_id=U1&upload_protocol=resumable`,
    });
  });

  test('with X-Svc-Base-Url, addresses of the platform in an answer lead to that URL, and anything but a base URL is a 400', async () => {
    const to = async (base: string) =>
      await answering((_, response) => response.writeHead(201, { location: '/v1/items/2?a=b' }).end(), {
        'x-svc-base-url': base,
      });
    const answered = await to('http://127.0.0.1:4001/proxy/demo-main/');
    expect(answered.headers.get('location')).toBe('http://127.0.0.1:4001/proxy/demo-main/items/2?a=b');
    expect(world.upstream.seen.at(-1)?.rawHeaders.join('\n')).not.toContain('4001');
    const wrong = ['4001', 'ftp://a/', 'http://a:b@c/', 'http://a/?b', 'http://a/#b', `http://a/${'x'.repeat(2_048)}`];
    for (const base of wrong) {
      const refused = await to(base);
      expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('X-Svc-Base-Url: write')]);
    }
  });
});
