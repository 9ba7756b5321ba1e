import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { FORBIDDEN_HEADERS } from '../world/forbidden-headers.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, READ, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };

describe.each(ONE_STORE)(`what is forwarded and what is returned, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ rules: ALLOW_ALL }));

  test.each([
    [{ type: 'header', name: 'X-Api-Key', prefix: 'Key ' }, 'x-api-key', `Key ${CANARY}`],
    [{ type: 'basic' }, 'authorization', `Basic ${btoa(`${CANARY}:`)}`],
  ])('the credential is placed where the manifest says, and only there: %j', async (auth, name, value) => {
    await organisation.platform({ id: 'placed', manifest: { auth }, secret: null });
    const made = await organisation.agent({
      policy: await organisation.policy([{ effect: 'allow' }]),
      grants: { placed: { connection_id: await organisation.connection('placed', { isDefault: false }) } },
    });
    const answer = await made.act({
      ...READ,
      platform: 'placed',
      headers: { Authorization: 'mine', [name]: 'mine too' },
    });
    expect(answer.status).toBe(answer.body.error === 'invalid_headers' ? 400 : 200);
    const clean = await made.act({ ...READ, platform: 'placed', headers: { [name]: 'mine' } });
    expect(clean.body._meta.dropped_headers).toEqual([name]);
    const { rawHeaders } = world.upstream.seen.at(-1)!;
    expect(rawHeaders.filter((text) => text.includes(CANARY) || text.includes(btoa(CANARY).slice(0, 20)))).toEqual([
      value,
    ]);
    expect(rawHeaders.filter((text) => text.toLowerCase() === name)).toHaveLength(1);
  });

  test('a credential in the query is sent, and recorded in no row', async () => {
    await organisation.platform({ id: 'queried', manifest: { auth: { type: 'query', name: 'appid' } } });
    const made = await organisation.agent({ grants: { queried: {} } });
    const answer = await made.act({ ...READ, platform: 'queried', endpoint: '/items?page=2' });
    expect(world.upstream.seen[0]!.target).toBe(`/v1/items?page=2&appid=${CANARY}`);
    // The echoed request target contains the credential, which is redacted.
    expect(answer.body.data.target).toBe('/v1/items?page=2&appid=[redacted]');
    expect(answer.body._meta.redacted).toBe(true);
    const { row } = await evidenceOf(world, made, auditIdOf(answer));
    expect(JSON.stringify(row)).not.toContain(CANARY);
    expect(JSON.parse(row.flags!)).toEqual({ redacted: true });
  });

  test('HD-01 to HD-08 forbidden headers are never sent, and are named in the answer and the row', async () => {
    const answer = await agent.act({
      ...WRITE,
      data: { a: 1 },
      headers: { ...FORBIDDEN_HEADERS, 'X-Named': 'x', 'X-Kept': 'kept', Accept: 'application/json' },
    });
    expect(answer.status).toBe(200);
    const dropped = [...Object.keys(FORBIDDEN_HEADERS).map((name) => name.toLowerCase()), 'x-named'].sort();
    expect(answer.body._meta.dropped_headers).toEqual(dropped);
    const { rawHeaders, headers, body } = world.upstream.seen[0]!;
    const names = rawHeaders.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase());
    expect(names.filter((name) => dropped.includes(name)).sort()).toEqual(
      ['authorization', 'connection', 'content-length', 'host'].sort(),
    );
    expect(headers).toMatchObject({
      authorization: `Bearer ${CANARY}`,
      host: world.upstream.address,
      'content-length': '7',
      'x-kept': 'kept',
      accept: 'application/json',
    });
    expect(JSON.stringify(rawHeaders)).not.toMatch(/evil|DELETE|Bearer mine/);
    expect(body).toBe('{"a":1}');
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(JSON.parse(row.flags!)).toEqual({ dropped_headers: dropped });
  });

  test.each([
    '/items?scope=admin&scope=read',
    '/items?a=%26b=c&c=d+e',
    '/items/a%20b',
    '/items/x;v=1',
    '/items/%C3%A9',
  ])('PA-10 an endpoint in normal form is sent byte for byte: %s', async (endpoint) => {
    const answer = await expectStatus(200, agent.act({ ...READ, endpoint }));
    expect(world.upstream.seen[0]!.target).toBe(`/v1${endpoint}`);
    const { payload } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(payload.path).toBe(endpoint.split('?')[0]);
  });

  test.each([403, 404, 422, 500, 503])('an upstream status of %i is reported in a 200', async (status) => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end('{"message":"no"}');
    };
    const answer = await expectStatus(200, agent.act(READ));
    expect(answer.body).toMatchObject({ data: { message: 'no' }, _meta: { upstream_status: status } });
    const { payload } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(payload).toMatchObject({ result: 'allowed', upstream_status: status });
  });

  test('SS-01 a redirect is reported and not followed', async () => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(302, { location: `${world.upstream.url}/elsewhere?token=abc` }).end();
    };
    const answer = await agent.act(READ);
    expect(answer.body._meta).toMatchObject({
      upstream_status: 302,
      upstream_location: `${world.upstream.url}/elsewhere`,
    });
    expect(world.upstream.seen).toHaveLength(1);
  });

  test.each([200, 304, 403, 429])(
    'paging, retry and validator headers of an answer of %i reach the agent',
    async (status) => {
      const shown = {
        link: '<https://up.test/items?after=abc>; rel="next"',
        'retry-after': '30',
        etag: 'W/"abc"',
        'last-modified': 'Fri, 20 Nov 2026 10:00:00 GMT',
        'x-ratelimit-remaining': '0',
        'x-rate-limit-reset': '1795170000',
        ratelimit: '"default";r=0;t=30',
        'ratelimit-policy': '"default";q=100',
        'x-request-id': 'r1',
        'x-github-request-id': 'r2',
        'x-amzn-requestid': 'r3',
        'x-slack-req-id': 'r4',
      };
      const others = { server: 'x', 'set-cookie': 'a=b', 'x-linked': 'x', etagged: 'x', 'x-request-identity': 'x' };
      world.upstream.answer = (_request, response) => {
        response.writeHead(status, { ...shown, ...others, 'X-RateLimit-Limit': ['60', '61'] }).end();
      };
      const answer = await expectStatus(200, agent.act(READ));
      expect(answer.body._meta.upstream_status).toBe(status);
      expect(answer.body._meta.upstream_headers).toEqual({ ...shown, 'x-ratelimit-limit': '60, 61' });
      const { row } = await evidenceOf(world, agent, auditIdOf(answer));
      expect(JSON.stringify(row)).not.toContain('after=abc');
      world.upstream.answer = undefined;
      expect((await agent.act(READ)).body._meta).not.toHaveProperty('upstream_headers');
    },
  );

  test('the credential is redacted from answer headers, in names and in values', async () => {
    world.upstream.answer = (_request, response) => {
      const headers = {
        link: `<https://up.test/items?key=${CANARY}&after=1>; rel="next", <https://up.test/${encodeURIComponent(btoa(CANARY))}>`,
        [`x-ratelimit-${CANARY.toLowerCase()}`]: '1',
        [`x-ratelimit-${CANARY}`]: '2',
        etag: '"kept"',
      };
      response.writeHead(200, headers).end('{}');
    };
    const answer = await agent.act(READ);
    expect(answer.text).not.toContain(CANARY);
    expect(answer.text).not.toContain(btoa(CANARY).slice(2, -4));
    expect(answer.body._meta).toMatchObject({ redacted: true, upstream_headers: { etag: '"kept"' } });
    expect(answer.body._meta.upstream_headers.link).toMatch(/^<https:\/\/up.test\/items\?key=\[redacted\]&after=1>/);
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(JSON.parse(row.flags!)).toEqual({ redacted: true });
  });

  test("HD-13 none of the upstream's headers are passed on as headers", async () => {
    world.upstream.answer = (_request, response) => {
      response
        .writeHead(200, {
          'content-type': 'text/html',
          'set-cookie': 'session=1',
          'www-authenticate': 'Basic',
          'content-security-policy': 'default-src *',
          link: '<https://evil.test>; rel=preload',
          'x-svc-attestation': 'forged',
          'x-upstream': 'yes',
        })
        .end('<script>1</script>');
    };
    const answer = await agent.act(READ);
    expect(answer.body.data).toBe('<script>1</script>');
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    for (const name of [
      'set-cookie',
      'www-authenticate',
      'content-security-policy',
      'link',
      'x-svc-attestation',
      'x-upstream',
    ])
      expect(answer.headers.get(name), name).toBeNull();
  });

  test.each<[string, number, string, string | Buffer, string]>([
    ['no byte', 200, 'application/json', '', 'null'],
    ['204', 204, 'application/json', '', 'null'],
    ['invalid JSON with its type', 200, 'application/json', '{"a":', '"{\\"a\\":"'],
    [
      'numbers beyond a double',
      200,
      'application/json',
      '{"n":12345678901234567890,"m":1e999}',
      '{"n":12345678901234567890,"m":1e999}',
    ],
    ['text', 200, 'text/plain', 'hello', '"hello"'],
    ['bytes', 200, 'image/png', Buffer.from([0x89, 0x50, 0, 1]), '"iVAAAQ=="'],
  ])('BD-15 an upstream answer of %s', async (_name, status, type, sent, data) => {
    world.upstream.answer = (_request, response) => {
      response.writeHead(status, { 'content-type': type }).end(sent);
    };
    const answer = await expectStatus(200, agent.act(READ));
    expect(answer.text.startsWith(`{"data":${data},"_meta":{`)).toBe(true);
    expect(answer.body._meta.encoding).toBe(type === 'image/png' ? 'base64' : undefined);
  });

  test('BD-01 BD-05 data with __proto__ and NUL is forwarded unchanged, without prototype pollution', async () => {
    const data = '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"nul":"a\\u0000b","n":1.50}';
    const answer = await agent.act(
      `{"platform":"demo","endpoint":"/items","method":"POST","scope":"demo:write","data":${data}}`,
    );
    expect(answer.status).toBe(200);
    expect(world.upstream.seen[0]!.body).toBe(data.replace('1.50', '1.5'));
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});
