/** /proxy: requests of any client of a platform are decided, sent unchanged, and answered as the platform answers. */
import { describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { expectStatus } from '../world/agent.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, givenWorld, READ, shared } from '../world/world.ts';
import { JSON_TYPE, rawClient } from './raw-client.ts';

describe.each(ONE_STORE)(`/proxy on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ rules: ALLOW_ALL }));
  const ask = rawClient(() => agent);
  const lastSeen = () => world.upstream.seen.at(-1);

  test('a read gets the platform’s answer, and is recorded', async () => {
    world.upstream.answer = (_, response) => {
      response.setHeader('content-type', 'text/plain; charset=utf-8');
      response.setHeader('x-ratelimit-remaining', '7');
      response.writeHead(203);
      response.end('plain text');
    };
    const answer = await ask('GET', '/proxy/demo-main/items/7?a=%20b');
    world.upstream.answer = undefined;
    expect(answer).toMatchObject({ status: 203, text: 'plain text' });
    expect(answer.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('7');
    expect(lastSeen()).toMatchObject({ method: 'GET', target: '/v1/items/7?a=%20b' });
    expect(lastSeen()?.headers.authorization).toBe(`Bearer ${CANARY}`);
    const { row, receipt } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? '');
    expect(row).toMatchObject({
      state: 'final',
      result: 'allowed',
      platform_id: 'demo',
      scope: 'demo:read',
      method: 'GET',
      path: '/items/7',
      upstream_status: 203,
    });
    expect(receipt).toBeDefined();
  });

  test('an escaped slash in lower case, as npm writes it, is decided, recorded and sent in upper case', async () => {
    const other = await world.organisation();
    const scopes = { 'npm:read': ['GET /*'] };
    const base_url = `${world.upstream.url}/v1`;
    await other.platform({ id: 'npm', manifest: { base_url, encoded_slash: true, scopes } });
    await other.platform({ id: 'plain', manifest: { base_url, scopes: { 'plain:read': ['GET /**'] } } });
    const grants = { npm: { scopeList: ['npm:read'] }, plain: { scopeList: ['plain:read'] } };
    const installing = await other.agent({
      rules: [...ALLOW_ALL, { effect: 'deny', endpoints: ['/@acme%2Fsecret'] }],
      grants,
    });
    const read = rawClient(() => installing);
    const answer = await expectStatus(200, read('GET', '/proxy/npm-main/@acme%2fapp?a=%2f'));
    expect(lastSeen()).toMatchObject({ target: '/v1/@acme%2Fapp?a=%2f' });
    const { row } = await evidenceOf(world, installing, answer.headers.get('x-svc-audit-id') ?? '');
    expect(row).toMatchObject({ path: '/@acme%2Fapp' });
    const sent = world.upstream.seen.length;
    expect((await read('GET', '/proxy/npm-main/@acme%2fsecret')).body.error).toBe('denied_by_policy');
    // Where the manifest does not allow an escaped slash, either spelling is refused.
    for (const slash of ['%2f', '%2F'])
      expect((await read('GET', `/proxy/plain-main/@acme${slash}app`)).body.error).toBe('invalid_endpoint');
    expect(world.upstream.seen).toHaveLength(sent);
  });

  test('20 answers with status 500 are passed on and open the breaker of the platform, 20 with 499 do not', async () => {
    const other = await world.organisation();
    await other.platform();
    const failing = await other.agent({ rules: ALLOW_ALL });
    const read = rawClient(() => failing);
    let status = 499;
    world.upstream.answer = (_, response) => response.writeHead(status).end('no');
    for (const each of [499, 500]) {
      status = each;
      for (let i = 0; i < 20; i++) expect((await read('GET', '/proxy/demo-main/items/7')).status).toBe(each);
    }
    world.upstream.answer = undefined;
    const sent = world.upstream.seen.length;
    expect((await read('GET', '/proxy/demo-main/items/7')).status).toBe(403);
    expect((await failing.act(READ)).body.reason).toBe('circuit_breaker_open');
    expect(world.upstream.seen).toHaveLength(sent);
  });

  test.each(['POST', 'PATCH'])('the bytes of a %s are sent unchanged', async (method) => {
    const body = '{ "title" :  "x", "n": 1.10 }';
    const path = method === 'POST' ? '/proxy/demo-main/items' : '/proxy/demo-main/items/1';
    await expectStatus(200, ask(method, path, { body, headers: { 'content-type': JSON_TYPE } }));
    expect(lastSeen()).toMatchObject({ method, body });
    expect(lastSeen()?.headers['content-type']).toBe(JSON_TYPE);
  });

  test('every byte of a short answer is passed on unchanged', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    world.upstream.answer = (_, response) => response.setHeader('content-type', 'application/octet-stream').end(bytes);
    const token = agent.token();
    const answer = await fetch(`${agent.baseUrl}/proxy/demo-main/items/7`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const got = Buffer.from(await answer.arrayBuffer());
    world.upstream.answer = undefined;
    expect(got.toString('hex')).toBe(bytes.toString('hex'));
    expect(answer.headers.get('content-length')).toBe('256');
  });

  test('a HEAD is judged as a GET and sent as it is', async () => {
    const answer = await ask('HEAD', '/proxy/demo-main/items');
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(lastSeen()).toMatchObject({ method: 'HEAD' });
    const { row } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? '');
    expect(row).toMatchObject({ method: 'GET', result: 'allowed' });
  });

  test('an upload is streamed, and refused when a rule needs its body', async () => {
    const body = 'x'.repeat(3 * 1024 * 1024);
    const answer = await ask('POST', '/proxy/demo-main/items', {
      body,
      headers: { 'content-type': 'application/octet-stream' },
    });
    expect(answer.status).toBe(200);
    expect(lastSeen()?.body.length).toBe(body.length);
    const when = 'has(request.body.amount) && request.body.amount > 1000';
    const before = world.upstream.seen.length;
    const send = async (rules: readonly unknown[], type: string) => {
      const limited = rawClient(await organisation.agent({ rules }).then((one) => () => one));
      return await limited('POST', '/proxy/demo-main/items', { body, headers: { 'content-type': type } });
    };
    for (const rules of [
      [{ effect: 'allow' }, { effect: 'deny', when }],
      [{ effect: 'allow' }, { effect: 'require_approval', when }],
      [{ effect: 'allow', when: 'request.body.amount < 1000' }],
      [
        { effect: 'allow' },
        { name: 'most', effect: 'deny', limit: { most: 9, of: 'double(request.body.amount)', per: 'day' } },
      ],
    ])
      for (const type of ['application/octet-stream', JSON_TYPE]) {
        const refused = await send(rules, type);
        expect(refused, JSON.stringify(rules)).toMatchObject({ status: 413, body: { error: 'payload_too_large' } });
        expect(refused.body.detail).toContain('more than 1024 KiB');
        const row = await findAuditRow(world.db, organisation.id, refused.headers.get('x-svc-audit-id') ?? '');
        expect(row).toMatchObject({ result: 'errored', reason: 'payload_too_large' });
      }
    // Another denial is reported instead, because a shorter body would not help.
    const denied = await send([{ effect: 'deny' }, { effect: 'deny', when }], JSON_TYPE);
    expect(denied).toMatchObject({ status: 403, body: { error: 'denied_by_policy' } });
    expect(world.upstream.seen).toHaveLength(before);
    const limited = await organisation.agent({ rules: [{ effect: 'allow' }, { effect: 'deny', when }] });
    const short = rawClient(() => limited);
    const type = { 'content-type': 'application/octet-stream' };
    expect((await short('POST', '/proxy/demo-main/items', { body: 'x', headers: type })).status).toBe(403);
    expect((await short('POST', '/proxy/demo-main/items', { body: '{"amount":1000}' })).status).toBe(200);
  });

  test('an event stream is passed on as it arrives', async () => {
    let proceed = () => {};
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      proceed = () => response.end('data: two\n\n');
    };
    const response = await fetch(`${agent.baseUrl}/proxy/demo-main/items`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    const reader = response.body!.getReader();
    const first = await reader.read();
    expect(String(new TextDecoder().decode(first.value))).toBe('data: one\n\n');
    proceed();
    const second = await reader.read();
    expect(new TextDecoder().decode(second.value)).toBe('data: two\n\n');
    expect((await reader.read()).done).toBe(true);
    world.upstream.answer = undefined;
    const { row } = await evidenceOf(world, agent, response.headers.get('x-svc-audit-id') ?? '');
    expect(row).toMatchObject({
      state: 'final',
      result: 'allowed',
      flags: expect.stringContaining('"ended":"complete"'),
    });
  });

  test.each<[string, (token: string) => Record<string, string>]>([
    [
      'X-Svc-Authorization',
      (token) => ({ 'x-svc-authorization': `Bearer ${token}`, authorization: 'Bearer sk_placeholder' }),
    ],
    ['Authorization: Bearer', (token) => ({ authorization: `Bearer ${token}` })],
    ['Authorization: token', (token) => ({ authorization: `token ${token}` })],
    ['Basic, as the password', (token) => ({ authorization: `Basic ${btoa(`x:${token}`)}` })],
    ['Basic, as the user', (token) => ({ authorization: `Basic ${btoa(`${token}:`)}` })],
  ])('the token is accepted in %s, and never forwarded', async (_, headersOf) => {
    const token = agent.token();
    await expectStatus(200, ask('GET', '/proxy/demo-main/items', { headers: headersOf(token), bare: true }));
    expect(JSON.stringify(lastSeen()?.rawHeaders)).not.toContain(token);
  });

  test('a connection is found by its current label, then by its id', async () => {
    await organisation.platform({ id: 'named', secret: null });
    const owner = await organisation.agent({ rules: ALLOW_ALL, grants: { named: {}, demo: {} } });
    const read = async (name: string) => {
      const answer = await rawClient(() => owner)('GET', `/proxy/${name}/items`);
      return answer.status === 200
        ? (await evidenceOf(world, owner, answer.headers.get('x-svc-audit-id') ?? '')).row.platform_id
        : answer.body.detail;
    };
    const id = await organisation.connection('named');
    expect(await read(id)).toBe('named');
    expect(await read('named-main')).toBe('named');
    await world.db.updateTable('connections').set({ label: 'renamed' }).where('id', '=', id).execute();
    expect(await read('named-main')).toContain('It has: demo-main, renamed.');
    expect(await read('renamed')).toBe('named');
    await world.db
      .updateTable('connections')
      .set({ label: id })
      .where('organisation_id', '=', organisation.id)
      .where('label', '=', 'demo-main')
      .execute();
    expect(await read(id)).toBe('demo');
    await world.db
      .updateTable('connections')
      .set({ label: 'demo-main' })
      .where('organisation_id', '=', organisation.id)
      .where('label', '=', id)
      .execute();
    expect(await read(id)).toBe('named');
    expect(await read('%00')).toContain('No such address');
  });

  test('the token is accepted in the header of the platform’s own key, and in no other', async () => {
    await organisation.platform({ id: 'keyed', manifest: { auth: { type: 'header', name: 'X-Api-Key' } } });
    const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { keyed: {}, demo: {} } });
    const headers = () => ({ 'x-api-key': holder.token() });
    await expectStatus(200, ask('GET', '/proxy/keyed-main/items', { headers: headers(), bare: true }));
    expect(lastSeen()?.headers['x-api-key']).toBe(CANARY);
    const other = await ask('GET', '/proxy/demo-main/items', { headers: headers(), bare: true });
    expect(other).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
    const none = await ask('GET', '/proxy/demo-main/items', { bare: true });
    expect(none).toMatchObject({ status: 401, body: { error: 'missing_token' } });
    expect(none.headers.get('www-authenticate')).toBe('Bearer realm="agent-broker"');
  });

  describe('refusals', () => {
    test.each<[string, string, string, Record<string, unknown>]>([
      ['an endpoint in no scope', 'GET', '/proxy/demo-main/secret', { error: 'endpoint_scope_mismatch' }],
      ['a dot segment', 'GET', '/proxy/demo-main/items/%2e%2e/x', { error: 'invalid_endpoint' }],
      ['a connection whose name cannot be decoded', 'GET', '/proxy/%zz/items', { error: 'not_found' }],
      ['an empty name of a connection', 'GET', '/proxy//items', { error: 'not_found' }],
      ['a connection without a grant', 'GET', '/proxy/other/items', { error: 'not_found' }],
    ])('%s', async (_, method, path, body) => {
      const answer = await withoutCalls(world, () => ask(method, path));
      expect(answer.body).toMatchObject({ ...body, detail: expect.any(String) });
      expect(answer.headers.get('content-type')).toBe('application/problem+json');
      expect(answer.headers.get('x-should-retry')).toBe('false');
      await world.forgive();
    });

    test('a refusal names the scope that is not granted', async () => {
      const reader = await organisation.agent({ rules: ALLOW_ALL, grants: { demo: { scopeList: ['demo:read'] } } });
      const answer = await rawClient(() => reader)('DELETE', '/proxy/demo-main/items/1');
      expect(answer).toMatchObject({ status: 403, body: { error: 'scope_not_granted' } });
      expect(answer.body.detail).toContain('demo:delete');
    });

    test('a refusal has the form of the platform’s own errors', async () => {
      await organisation.platform({
        id: 'shaped',
        manifest: { error_body: { error: { message: '{detail}', type: '{code}', status: '{status}' } } },
      });
      const holder = await organisation.agent({ rules: [{ effect: 'deny' }], grants: { shaped: {} } });
      const answer = await rawClient(() => holder)('GET', '/proxy/shaped-main/items');
      expect(answer.body).toEqual({
        error: { message: expect.stringContaining('denied_by_policy'), type: 'denied_by_policy', status: 403 },
      });
    });

    test.each([
      [200, { ok: false, error: '{code}' }],
      [403, { error: '{code}' }],
    ])(
      'a refusal has the status %i when the platform reports errors in the body, as %j',
      async (status, error_body) => {
        const id = `telling-${status}`;
        await organisation.platform({ id, manifest: { error_body, failed_if: { at: '/ok', is: false } } });
        const holder = await organisation.agent({ rules: [{ effect: 'deny' }], grants: { [id]: {} } });
        const answer = await rawClient(() => holder)('GET', `/proxy/${id}-main/items`);
        expect(answer).toMatchObject({ status, body: { error: 'denied_by_policy' } });
      },
    );

    test('a refusal has a status that clients do not retry, if they look at the status only', async () => {
      const manifest = {
        error_body: { ok: false, error: '{code}' },
        failed_if: { at: '/ok', is: false },
        error_status: { 'POST /items': 429, 'PATCH /items/*': 422 },
      };
      await organisation.platform({ id: 'looking', manifest });
      const holder = await organisation.agent({ rules: [{ effect: 'deny' }], grants: { looking: {} } });
      const asked = async (method: string, path: string) =>
        await rawClient(() => holder)(method, `/proxy/looking-main${path}`, { body: '{}' });
      const given = await asked('POST', '/items?a=1');
      expect(given).toMatchObject({ status: 429, body: { error: 'denied_by_policy' } });
      expect(given.headers.get('retry-after')).toMatch(/^agent-broker: denied_by_policy: [ -~]{20,}$/);
      const other = await asked('PATCH', '/items/1');
      expect([other.status, other.headers.get('retry-after')]).toEqual([422, null]);
      expect((await asked('DELETE', '/items/1')).status).toBe(200);
    });

    test.each<[string, Parameters<typeof ask>[2]]>([
      ['in the body', { body: 'TOKEN' }],
      ['in another header', { headers: { accept: 'TOKEN' } }],
    ])('a token %s is refused', async (_, given) => {
      const token = agent.token();
      const filled = JSON.parse(JSON.stringify(given).replaceAll('TOKEN', token));
      const headers = { 'x-svc-authorization': token, ...filled.headers };
      const answer = await ask('POST', '/proxy/demo-main/items', { ...filled, headers, bare: true });
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
      expect(answer.text).not.toContain(token);
      await world.forgive();
    });

    test('a client may send the token in the header of the platform’s key and in Authorization, but in no other', async () => {
      const manifest = { auth: { type: 'header', name: 'apikey' }, client_headers: ['x-client-info'] };
      await organisation.platform({ id: 'double', manifest });
      const holder = await organisation.agent({ rules: ALLOW_ALL, grants: { double: {} } });
      const token = holder.token();
      const sent = { authorization: `Bearer ${token}`, apikey: token, 'x-client-info': 'a/1' };
      const raw = rawClient(() => holder);
      const path = '/proxy/double-main/items';
      expect(await raw('GET', path, { headers: sent, bare: true })).toMatchObject({ status: 200 });
      const { headers, rawHeaders } = world.upstream.seen.at(-1)!;
      expect(headers).toMatchObject({ apikey: CANARY, 'x-client-info': 'a/1' });
      expect(rawHeaders.join('\n')).not.toContain(token);
      for (const name of ['x-client-info', 'x-other']) {
        const refused = await raw('GET', path, { headers: { ...sent, [name]: token }, bare: true });
        expect(refused).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
      }
      await world.forgive();
    });

    test.each(['OPTIONS', 'TRACE'])('the method %s is refused', async (method) => {
      const answer = await withoutCalls(world, () => ask(method, '/proxy/demo-main/items'));
      expect(answer).toMatchObject({ status: 405, headers: expect.anything() });
      expect(answer.text).not.toContain('authorization');
    });
  });

  test.each([
    ['link', '<?page=2>; rel="next"', '</items?page=2>; rel="next"'],
    ['link', '<items?page=2>; rel="next"', '</items?page=2>; rel="next"'],
    ['link', '</v1/items?page=2>; rel="next"', '</items?page=2>; rel="next"'],
    ['location', 'items/7', '/items/7'],
    ['content-location', '#a', '/items?page=1#a'],
    // Above the base URL, and so not below /proxy.
    ['location', '../other', undefined],
  ])('a relative URL in an answer is resolved against the requested URL: %s: %s', async (name, value, expected) => {
    world.upstream.answer = (_, response) => response.writeHead(200, { [name]: value }).end();
    const answer = await ask('GET', '/proxy/demo-main/items?page=1');
    world.upstream.answer = undefined;
    const proxyUrl = `${agent.baseUrl}/proxy/demo-main`;
    const through = expected === undefined ? `${world.upstream.url}/other` : expected.replace(/^<?/, `$&${proxyUrl}`);
    expect(answer.headers.get(name)).toBe(through);
  });

  test('no header of an answer can act on the console’s origin', async () => {
    world.upstream.answer = (_, response) => {
      response.writeHead(200, {
        'content-type': 'text/html',
        'set-cookie': 'a=b',
        'clear-site-data': '"*"',
        refresh: '0;url=/x',
        'access-control-allow-origin': '*',
        'service-worker-allowed': '/',
        link: '</style.css>; rel=preload, </a.css>; as=style; REL = "x p\\reload", </v1/items?page=2>; rel="next"',
        'x-svc-audit-id': 'forged',
        'content-security-policy': 'default-src *',
      });
      response.end('<script>alert(1)</script>');
    };
    const answer = await ask('GET', '/proxy/demo-main/items');
    world.upstream.answer = undefined;
    const headers = Object.fromEntries(answer.headers);
    expect(headers).toMatchObject({
      'content-security-policy': "sandbox; default-src 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      link: `<${agent.baseUrl}/proxy/demo-main/items?page=2>; rel="next"`,
    });
    for (const name of [
      'set-cookie',
      'clear-site-data',
      'refresh',
      'access-control-allow-origin',
      'service-worker-allowed',
    ])
      expect(headers, name).not.toHaveProperty(name);
    expect(headers['x-svc-audit-id']).not.toContain('forged');
  });

  test.each<[string, string]>([
    ['sec-fetch-mode', 'navigate'],
    ['sec-fetch-dest', 'document'],
    ['service-worker', 'script'],
  ])('a browser request with %s: %s is refused before anything is sent', async (name, value) => {
    const answer = await withoutCalls(world, () =>
      expectStatus(403, ask('GET', '/proxy/demo-main/items', { headers: { [name]: value } })),
    );
    expect(answer.headers.get('www-authenticate')).toBeNull();
  });

  test('a POST or PATCH whose answer is lost gets a status that clients do not retry; a PUT, a read, and what was not sent a 502', async () => {
    const scopes = { 'lossy:all': ['GET /**', 'POST /**', 'PATCH /**', 'PUT /**'] };
    await organisation.platform({ id: 'lossy', manifest: { scopes } });
    // Nothing listens on port 9 (discard).
    await organisation.platform({ id: 'closed', manifest: { scopes, base_url: 'http://127.0.0.1:9' } });
    const grants = { lossy: { scopeList: ['lossy:all'] }, closed: { scopeList: ['lossy:all'] } };
    const other = await organisation.agent({ rules: ALLOW_ALL, grants });
    world.upstream.answer = (request) => request.socket.destroy();
    const lost = async (method: string, connection = 'lossy-main') => {
      const options = method === 'GET' ? {} : { body: '{"n":1}' };
      const answer = await rawClient(() => other)(method, `/proxy/${connection}/items/1`, options);
      expect([answer.body.error, answer.headers.get('x-should-retry')]).toEqual(['upstream_unreachable', 'false']);
      return [answer.status, /may have been made/.test(answer.body.detail)];
    };
    expect(await lost('POST')).toEqual([422, true]);
    expect(await lost('PATCH')).toEqual([422, true]);
    expect(await lost('PUT')).toEqual([502, true]);
    expect(await lost('GET')).toEqual([502, false]);
    world.upstream.answer = undefined;
    expect(await lost('POST', 'closed-main')).toEqual([502, false]);
  });

  test('a write whose outcome cannot be recorded answers with a status that clients do not retry; one that was not sent can be retried', async () => {
    let end = () => Promise.resolve();
    world.upstream.answer = async (_, response) => {
      end = await refuseAuditRows(world, 'final');
      response.end('{}');
    };
    const made = await ask('POST', '/proxy/demo-main/items', { body: '{"n":1}' });
    world.upstream.answer = undefined;
    await end();
    expect(made, made.text).toMatchObject({ status: 422, body: { error: 'audit_unavailable' } });
    expect(made.body.detail).toContain('may have been made');
    expect(made.headers.get('retry-after')).toBeNull();
    expect(made.headers.get('x-should-retry')).toBe('false');
    const before = world.upstream.seen.length;
    end = await refuseAuditRows(world);
    const unsent = await ask('POST', '/proxy/demo-main/items', { body: '{"n":2}' });
    await end();
    expect(unsent, unsent.text).toMatchObject({ status: 503, body: { error: 'audit_unavailable' } });
    expect([unsent.headers.get('retry-after'), unsent.headers.has('x-should-retry')]).toEqual(['5', false]);
    expect(world.upstream.seen.length).toBe(before);
  });

  test('an echoed credential is redacted, in any form', async () => {
    const forms = [
      CANARY,
      Buffer.from(CANARY).toString('base64'),
      [...CANARY].map((c) => `&#${c.charCodeAt(0)};`).join(''),
    ];
    for (const form of forms) {
      world.upstream.answer = (_, response) => {
        response.setHeader('content-type', 'text/plain');
        response.setHeader('x-echo', CANARY);
        response.end(`before ${form} after`);
      };
      const answer = await ask('GET', '/proxy/demo-main/items');
      expect(answer.text).not.toContain(form);
      expect(JSON.stringify([...answer.headers])).not.toContain(CANARY);
    }
    world.upstream.answer = undefined;
  });
});
