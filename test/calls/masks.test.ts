/** Masks: what rules remove from the answers of calls, through every entry point, and which answers are withheld. */
import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { callOf, connected } from '../upstream-mcp/connected.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { startMcpServer } from '../world/mcp/server.ts';
import { callMcp } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, CANARY, fresh, givenWorld, READ, startWorld, WRITE } from '../world/world.ts';

const CONTACT = { email: 'ann@x.example', phones: ['+49 30 1234567'], name: 'Ann', note: 'mail ann@x.example' };
const NO_MAIL = { name: 'no-mail', effect: 'mask', mask: { members: ['email'], values: ['email'] } };
const MASKED = { ...CONTACT, email: '[masked]', note: 'mail [masked]' };
const BY_NAME = { name: 'by-name', effect: 'mask', mask: { members: ['email'] } };

describe.each(ONE_STORE)(`masks on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const newAgent = (rules: object[] = ALLOW_ALL) => organisation.agent({ rules: rules as never });
  const agent = fresh(() => newAgent());
  const raw = rawClient(() => agent);
  /** What the platform answers. */
  const answering = (body: string | Buffer, headers: Record<string, string> = {}, status = 200) => {
    world.upstream.answer = (_, response) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  };
  beforeEach(() => {
    answering(JSON.stringify(CONTACT));
    onTestFinished(() => {
      world.upstream.answer = undefined;
    });
  });
  const rowOf = ({ headers }: Answer) => headers.get('x-svc-audit-id') ?? '';
  const flagsOf = async (by: TestAgent, auditId: string) => {
    const { row, payload } = await evidenceOf(world, by, auditId);
    return { row, payload, flags: JSON.parse(row.flags ?? '{}') };
  };

  test('POST /v1/actions: the answer is masked and says so; the row has the rules and the number of masked values', async () => {
    expect((await agent.act(READ)).body.data).toEqual(CONTACT);
    await organisation.guardrails([NO_MAIL]);
    const answer = await agent.act(READ);
    expect(answer.body.data).toEqual(MASKED);
    expect(answer.body._meta.masked).toEqual({ count: 2, rules: ['no-mail'] });
    const { row, payload, flags } = await flagsOf(agent, answer.body._meta.audit_id);
    expect(flags.masked).toBe(2);
    const matched = expect.arrayContaining([{ source: 'guardrail', name: 'no-mail', effect: 'mask' }]);
    expect(JSON.parse(row.decision ?? '{}').matched).toEqual(matched);
    expect(payload.decision.matched).toEqual(matched);
    // PII flags do not include what the agent did not get.
    expect(payload.pii_flags?.response ?? []).not.toContain('email');
    expect(answer.text + JSON.stringify(row)).not.toContain('ann@x.example');
  });

  test('a mask applies to calls that the rule matches, and allows no call by itself', async () => {
    await organisation.guardrails([{ ...NO_MAIL, endpoints: ['/items/*'], when: 'request.query.of == "customer"' }]);
    const asked = async (endpoint: string) => (await agent.act({ ...READ, endpoint })).body.data;
    expect(await asked('/items?of=customer')).toEqual(CONTACT);
    expect(await asked('/items/7?of=customer')).toEqual(MASKED);
    expect(await asked('/items/7?of=team')).toEqual(CONTACT);
    // A condition that fails to evaluate counts against the agent.
    expect(await asked('/items/7')).toEqual(MASKED);
    const under = await newAgent([NO_MAIL]);
    const refused = await under.act(READ);
    expect([refused.status, refused.body.reason]).toEqual([403, 'denied_by_policy']);
  });

  test('masks of guardrails and policy apply together, to children as to their parent', async () => {
    const under = await newAgent([{ effect: 'allow' }, { effect: 'mask', mask: { members: ['/phones'] } }]);
    await organisation.guardrails([
      { name: 'no-mail', effect: 'mask', mask: { values: ['email'] } },
      { name: 'its-own', effect: 'mask', when: `agent.agent_id == "${under.agentId}"`, mask: { members: ['name'] } },
    ]);
    const masked = { ...MASKED, phones: null, name: '[masked]' };
    expect((await under.act(READ)).body.data).toEqual(masked);
    const child = await childOf(world, organisation, under);
    const answer = await child.act(READ);
    expect(answer.body.data).toEqual(masked);
    expect(answer.body._meta.masked.rules).toEqual(['no-mail', 'its-own', 'rule 2']);
  });

  test('/proxy: the answer is masked, with its new length, and without headers that reveal the original', async () => {
    await organisation.guardrails([NO_MAIL]);
    const body = JSON.stringify(CONTACT);
    answering(body, { etag: '"abc"', 'content-md5': 'x', 'content-length': String(body.length), 'x-kept': '1' });
    const answer = await raw('GET', '/proxy/demo-main/items');
    expect([answer.status, answer.body]).toEqual([200, MASKED]);
    expect(answer.headers.get('content-length')).toBe(String(answer.text.length));
    expect(answer.headers.get('x-svc-masked')).toBe('no-mail');
    expect([answer.headers.get('etag'), answer.headers.get('content-md5')]).toEqual([null, null]);
    expect(answer.headers.get('x-kept')).toBe('1');
    const { flags } = await flagsOf(agent, rowOf(answer));
    const sha256 = createHash('sha256').update(answer.text).digest('hex');
    expect(flags).toMatchObject({ masked: 2, answer_bytes: answer.text.length, answer_sha256: sha256 });
    const head = await raw('HEAD', '/proxy/demo-main/items');
    expect([head.status, head.headers.get('content-length'), head.headers.get('etag')]).toEqual([200, null, null]);
  });

  test('/proxy: a long answer is masked as a whole, compressed or not, and one that is too long is withheld', async () => {
    await organisation.guardrails([BY_NAME]);
    const many = (n: number) =>
      JSON.stringify(Array.from({ length: n }, (_, id) => ({ id, email: `a${id}@x.example` })));
    answering(many(50_000));
    const answer = await raw('GET', '/proxy/demo-main/items');
    expect([answer.status, answer.body.length]).toEqual([200, 50_000]);
    expect(answer.body[49_999]).toEqual({ id: 49_999, email: '[masked]' });
    answering(Buffer.alloc(11 * 1024 * 1024, ' '));
    const refused = await raw('GET', '/proxy/demo-main/items');
    expect([refused.status, refused.body.error]).toEqual([502, 'upstream_response_blocked']);
  });

  test.each([
    ['a rule cannot mask it', true],
    ['it holds the credential in bytes', false],
  ])(
    '/proxy: a write that was made, of which %s, answers with a status that clients do not retry',
    async (_, isMasked) => {
      if (isMasked) await organisation.guardrails([BY_NAME]);
      const hidden = Buffer.concat([Buffer.from([0x89, 0x50, 0, 1, 255]), Buffer.from(CANARY)]);
      answering(isMasked ? 'created' : hidden, { 'content-type': isMasked ? 'text/plain' : 'image/png' }, 201);
      const made = await raw('POST', '/proxy/demo-main/items', { body: '{}' });
      expect(made, made.text).toMatchObject({ status: 422, body: { error: 'upstream_response_blocked' } });
      expect(made.body.detail).toMatch(/ The call was made; do not repeat it\.$/);
      expect(made.headers.get('x-should-retry')).toBe('false');
      expect((await raw('GET', '/proxy/demo-main/items')).status).toBe(502);
      expect((await raw('HEAD', '/proxy/demo-main/items')).status).not.toBe(422);
      expect((await agent.act(WRITE)).status).toBe(502);
    },
  );

  test('/proxy: events are masked as they arrive', async () => {
    await organisation.guardrails([NO_MAIL]);
    let goOn = () => {};
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify({ n: 1, ...CONTACT })}\n\ndata: {"em`);
      goOn = () => response.end('ail":"bob@x.example"}\n\ndata: [DONE]\n\n');
    };
    const answer = await fetch(`${agent.baseUrl}/proxy/demo-main/items`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe(`data: ${JSON.stringify({ n: 1, ...MASKED })}\n\n`);
    goOn();
    let rest = '';
    for (let read = await reader.read(); !read.done; read = await reader.read()) rest += read.value;
    expect(rest).toBe('data: {"email":"[masked]"}\n\ndata: [DONE]\n\n');
    const { flags } = await flagsOf(agent, answer.headers.get('x-svc-audit-id') ?? '');
    expect(flags).toMatchObject({ ended: 'complete', masked: 3 });
  });

  test.each(['; charset=""utf-16', '; charset=', '; x=1 charset=utf-16', '; charset=utf-8; charset=utf-16'])(
    '/proxy: events that some reader may decode with another charset than UTF-8 are withheld: "%s"',
    async (parameters) => {
      await organisation.guardrails([NO_MAIL]);
      answering(`data: ${JSON.stringify(CONTACT)}\n\n`, { 'content-type': `text/event-stream${parameters}` });
      const refused = await raw('GET', '/proxy/demo-main/items');
      expect([refused.status, refused.body.error]).toEqual([502, 'upstream_response_blocked']);
    },
  );

  test.each([
    ['bytes', Buffer.from([0, 1, 255]), { 'content-type': 'image/png' }, 200],
    ['a text', 'email ann', { 'content-type': 'text/plain' }, 200],
    ['an error page', '<h1>ann</h1>', { 'content-type': 'text/html' }, 404],
    ['a part of a whole', '{}', {}, 206],
  ] as const)('no entry point returns anything of %s', async (_, body, headers, status) => {
    await organisation.guardrails([BY_NAME]);
    answering(body as Buffer, headers as never, status);
    const answer = await agent.act(READ);
    expect([answer.status, answer.body.error]).toEqual([502, 'upstream_response_blocked']);
    expect(answer.body.detail).toContain('A rule masks');
    const proxied = await raw('GET', '/proxy/demo-main/items');
    expect([proxied.status, proxied.body.error]).toEqual([502, 'upstream_response_blocked']);
    expect(proxied.text).toContain('A rule masks');
    for (const one of [answer.body.audit_id, rowOf(proxied)]) {
      const { row, flags } = await flagsOf(agent, one);
      expect(row).toMatchObject({ result: 'blocked', reason: 'upstream_response_blocked', upstream_status: status });
      expect(flags).toMatchObject(one === answer.body.audit_id ? { not_masked: true } : { ended: 'not_masked' });
    }
  });

  test('answers of approved calls and of repeats with an Idempotency-Key are masked, also by rules added later', async () => {
    await organisation.guardrails([{ name: 'ask', effect: 'require_approval', scopes: ['demo:write'] }]);
    const held = await expectStatus(202, agent.act({ ...WRITE, data: {} }));
    await organisation.guardrails([NO_MAIL]);
    await organisation.approve(held.body.approval_id);
    await expect
      .poll(async () => (await agent.get(`/v1/approvals/${held.body.approval_id}`)).body.result)
      .toMatchObject({ data: MASKED, masked: { count: expect.any(Number), rules: [NO_MAIL.name] } });
    const again = { 'idempotency-key': 'k1' };
    const made = [await agent.act({ ...WRITE, data: {} }, again), await agent.act({ ...WRITE, data: {} }, again)];
    expect(made.map(({ body }) => body.data)).toEqual([MASKED, MASKED]);
  });

  test('/mcp: structured content and text of a tool result are masked, and so are answers through the tools of the broker', async () => {
    const mcp = await startMcpServer('both');
    const reaching = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: mcp.address });
    const { organisation: other, agent: caller } = await connected(reaching, mcp);
    await other.guardrails([BY_NAME]);
    const call = callOf('search_issues', 'tools:search.read', { email: 'ann@x.example', n: 1 });
    const answer = await expectStatus(200, caller.act(call));
    expect(answer.body.data).toMatchObject({
      content: [{ type: 'text', text: '{"email":"[masked]","n":1}' }],
      structuredContent: { name: 'search_issues', args: { email: '[masked]', n: 1 } },
    });
    await organisation.guardrails([NO_MAIL]);
    const message = {
      method: 'tools/call',
      params: { name: 'read_platform', arguments: { platform: 'demo', scope: 'demo:read', endpoint: '/items' } },
    };
    const { text } = await callMcp(world.running.baseUrl, agent.token(), message);
    expect(text).toContain('[masked]');
    expect(text).not.toContain('ann@x.example');
  });

  test('GraphQL: fields are masked under any alias; with a mask by path, a document with aliases is refused', async () => {
    const base_url = `${world.upstream.url}/graphql`;
    await organisation.platform({
      id: 'gql',
      manifest: { kind: 'graphql', base_url, scopes: { 'gql:read': ['query *'] } },
    });
    const asking = await organisation.agent({ rules: ALLOW_ALL, grants: { gql: { scopeList: ['gql:read'] } } });
    await organisation.guardrails([BY_NAME]);
    const query = (text: string) =>
      asking.act({ platform: 'gql', endpoint: '/', method: 'POST', scope: 'gql:read', data: { query: text } });
    for (const text of [
      '{ me { email } }',
      '{ me { e: email name: id } }',
      '{ me { ...F } } fragment F on U { e: email }',
    ]) {
      const as = text.includes('e: email') ? 'e' : 'email';
      answering(JSON.stringify({ data: { me: { [as]: 'a', name: 'b' } } }));
      expect((await query(text)).body.data).toEqual({ data: { me: { [as]: '[masked]', name: 'b' } } });
    }
    const byPath = { ...BY_NAME, mask: { members: ['/data/me/email'] } };
    await organisation.guardrails([byPath]);
    const before = world.upstream.seen.length;
    for (const text of ['{ me { e: email } }', '{ x: me { email } }']) {
      const refused = await query(text);
      expect([refused.status, refused.body.reason], refused.text).toEqual([403, 'denied_by_guardrail']);
      expect(refused.body.detail).toContain('by-name masks what this call is answered');
    }
    expect(world.upstream.seen.length).toBe(before);
    answering('{"data":{"me":{"email":"a"}}}');
    expect((await query('{ me { email: email } }')).body.data).toEqual({ data: { me: { email: '[masked]' } } });
  });

  test('masks of a platform’s manifest apply to every agent, in every spelling, in addition to masks of rules', async () => {
    const scopes = { 'own:read': ['GET /keys/*', 'GET /other'] };
    const manifest = { base_url: `${world.upstream.url}/v1`, scopes, masks: { 'GET /keys/*': ['token'] } };
    await organisation.platform({ id: 'own', manifest });
    const asking = await organisation.agent({ rules: ALLOW_ALL, grants: { own: { scopeList: ['own:read'] } } });
    const read = async (endpoint: string) =>
      (await asking.act({ platform: 'own', scope: 'own:read', method: 'GET', endpoint })).body;
    const key = { token: 'sk', email: 'a' };
    answering(JSON.stringify(key));
    const answer = await read('/keys/7');
    expect(answer.data).toEqual({ ...key, token: '[masked]' });
    expect(answer._meta.masked).toEqual({ count: 1, rules: ['platform'] });
    expect((await read('/other')).data).toEqual(key);
    await organisation.guardrails([BY_NAME]);
    expect((await read('/keys/7'))._meta.masked).toEqual({ count: 2, rules: ['by-name', 'platform'] });
    await organisation.guardrails([]);
    const proxied = await rawClient(() => asking)('GET', '/proxy/own-main/keys/7');
    expect([proxied.body, proxied.headers.get('x-svc-masked')]).toEqual([{ ...key, token: '[masked]' }, 'platform']);
    // A body that is not JSON has no such member.
    answering('<h1>Sorry</h1>', { 'content-type': 'text/html' }, 502);
    expect((await read('/keys/7')).data).toBe('<h1>Sorry</h1>');
    const page = await rawClient(() => asking)('GET', '/proxy/own-main/keys/7');
    expect([page.status, page.text, page.headers.get('x-svc-masked')]).toEqual([502, '<h1>Sorry</h1>', null]);
  });

  test('masks by path in a manifest apply under GraphQL aliases, and binary answers pass unchanged', async () => {
    const base_url = `${world.upstream.url}/graphql`;
    const masks = { 'query *': ['/data/*/token'] };
    const manifest = { kind: 'graphql', base_url, scopes: { 'gql:read': ['query *'] }, masks };
    await organisation.platform({ id: 'gql', manifest });
    const asking = await organisation.agent({ rules: ALLOW_ALL, grants: { gql: { scopeList: ['gql:read'] } } });
    answering('{"data":{"x":{"t":"sk"}}}');
    const call = { platform: 'gql', endpoint: '/', method: 'POST', scope: 'gql:read' };
    const { body } = await asking.act({ ...call, data: { query: '{ x: key { t: token } }' } });
    expect(body.data).toEqual({ data: { x: { t: '[masked]' } } });
    const own = {
      base_url: `${world.upstream.url}/v1`,
      scopes: { 'own:read': ['GET /keys/*'] },
      masks: { 'GET /keys/*': ['token'] },
    };
    await organisation.platform({ id: 'own', manifest: own });
    const reader = await organisation.agent({ rules: ALLOW_ALL, grants: { own: { scopeList: ['own:read'] } } });
    const picture = Buffer.from([0x89, 0x50, 0, 1, 255]);
    answering(picture, { 'content-type': 'image/png' });
    const got = await fetch(`${reader.baseUrl}/proxy/own-main/keys/7`, {
      headers: { authorization: `Bearer ${reader.token()}` },
    });
    expect(Buffer.from(await got.arrayBuffer())).toEqual(picture);
  });

  test('a repository’s clone token is masked', async () => {
    const { data } = parsePlatformEntry({ use: 'github', base_url: world.upstream.url });
    await organisation.platform({ id: 'codehost', manifest: data as Record<string, unknown> });
    const asking = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: ['codehost:metadata.read'] } },
    });
    answering('{"name":"app","temp_clone_token":"ABTLWH"}');
    const call = { platform: 'codehost', scope: 'codehost:metadata.read', method: 'GET', endpoint: '/repos/acme/app' };
    expect((await asking.act(call)).body.data).toEqual({ name: 'app', temp_clone_token: '[masked]' });
    // Clients revalidate with an ETag: it is dropped only when something was masked.
    for (const [body, etag] of [
      ['{"name":"app","temp_clone_token":"ABTLWH"}', null],
      ['{"name":"app"}', '"e"'],
    ] as const) {
      answering(body, { etag: '"e"' });
      const raw = await fetch(`${asking.baseUrl}/proxy/codehost-main/repos/acme/app`, {
        headers: { authorization: `Bearer ${asking.token()}` },
      });
      expect([raw.status, raw.headers.get('etag'), await raw.text()]).toEqual([
        200,
        etag,
        body.replace('ABTLWH', '[masked]'),
      ]);
    }
  });

  test('keys of a platform are not returned in a script (JSONP)', async () => {
    const masks = { 'GET /keys/*': ['token'] };
    const manifest = { base_url: `${world.upstream.url}/v1`, scopes: { 'own:read': ['GET /keys/*'] }, masks };
    await organisation.platform({ id: 'own', manifest });
    const { data } = parsePlatformEntry({ use: 'github', base_url: world.upstream.url });
    await organisation.platform({ id: 'codehost', manifest: data as Record<string, unknown> });
    const grants = { own: { scopeList: ['own:read'] }, codehost: { scopeList: ['codehost:metadata.read'] } };
    const asking = await organisation.agent({ rules: ALLOW_ALL, grants });
    const viaProxy = rawClient(() => asking);
    answering('/**/x({"meta":{"status":200},"data":{"token":"KEY7X"}})', { 'content-type': 'application/javascript' });
    const endpoint = '/keys/7?callback=x';
    for (const { status, body, text } of [
      await asking.act({ platform: 'own', scope: 'own:read', method: 'GET', endpoint }),
      await viaProxy('GET', `/proxy/own-main${endpoint}`),
    ]) {
      expect([status, body.error]).toEqual([502, 'upstream_response_blocked']);
      expect(text).not.toContain('KEY7X');
    }
    const refused = await withoutCalls(world, () => viaProxy('GET', '/proxy/codehost-main/repos/acme/app?callback=x'));
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('callback')]);
  });

  test('a simulation by an owner shows what would be masked', async () => {
    await organisation.guardrails([NO_MAIL]);
    const tried = await organisation.ask('POST', '/owner/simulate', { agent_id: agent.agentId, ...READ });
    expect(tried.body).toMatchObject({
      decision: 'allow',
      mask: { members: ['email'], values: ['email'], rules: ['no-mail'] },
      matched: [
        { name: 'no-mail', effect: 'mask' },
        { name: 'rule 1', effect: 'allow' },
      ],
    });
    // A mask changes nothing about what is allowed.
    const { platforms } = (await agent.get('/v1/agent/permissions')).body.data;
    expect(platforms[0].conditionalScopes ?? []).toEqual([]);
  });
});
