/** Spellings of names and paths that lenient servers read alike do not bypass denials, constraints or conditions. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { actThrough, ENTRY_POINTS, type EntryPointCall } from '../proxy/entry-points.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { lenientServer, type Understood } from '../world/servers/lenient-server.ts';
import { CANARY, givenWorld, READ, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} };

const understood: Understood[] = [];
const last = () => understood.at(-1)!;

/** An agent that may do everything that the rules leave. */
async function agentUnder(rules: readonly unknown[] = [], grants: Record<string, object> = { demo: {} }) {
  return await organisation.agent({ policy: await organisation.policy([{ effect: 'allow' }, ...rules]), grants });
}

const world = givenWorld();
const organisation = shared(() =>
  world.demoOrganisation({ manifest: { forbidden_headers: ['X-On-Behalf-Of', 'Act_As'] } }),
);
beforeAll(async () => {
  await organisation.platform({ id: 'formed', manifest: { body: 'form' } });
  await organisation.platform({ id: 'queried', manifest: { auth: { type: 'query', name: 'app_id' } } });
  await organisation.platform({
    id: 'mail',
    manifest: { scopes: { 'mail:send': ['POST /messages'] }, recipients: { 'POST /messages': ['/emailAddress'] } },
  });
  await organisation.platform({
    id: 'forms',
    manifest: {
      body: 'form',
      scopes: { 'mail:send': ['POST /messages'] },
      recipients: { 'POST /messages': ['/emailAddress'] },
    },
  });
  await organisation.platform({
    id: 'post',
    manifest: {
      encoded_slash: true,
      scopes: { 'mail:send': ['POST /**'] },
      recipients: { 'POST /v1/messages': ['/emailAddress'] },
    },
  });
  await organisation.platform({ id: 'wide', manifest: { scopes: { 'demo:read': ['GET /**'] } } });
  const scopes = { 'demo:read': ['GET /projects/**'], 'demo:secrets': ['GET /projects/*/variables'] };
  await organisation.platform({ id: 'forge', manifest: { scopes } });
});
beforeEach(async () => {
  understood.length = 0;
  world.upstream.answer = lenientServer(understood);
  await world.forgive();
});

describe('headers', () => {
  const agent = shared(() => agentUnder());

  test.each([
    'X_HTTP_Method_Override',
    'X_HTTP-Method.Override',
    'X_Method_Override',
    'X_Tunneled_Method',
    'X_Original_URL',
    'X_Forwarded_For',
    'X_Svc_Caller',
    'X_Svc_Attestation',
    'Proxy_Authorization',
    'Content_Type',
    'X_On_Behalf_Of',
    'Act-As',
    'X_Team',
    'Sudo',
    'X-Sendfile-Type',
    'X-Accel-Mapping',
    'X-Envoy-Original-Path',
    'X-Override-URL',
    'Remote-User',
    'X-Remote-Group',
    'X_WebAuth_User',
    'X-Auth-Request-Email',
    'X-Amzn-Oidc-Identity',
    'X-MS-Client-Principal-Name',
    'Cf-Access-Jwt-Assertion',
  ])('%s is not sent, because servers fold names, and is named in the answer', async (name) => {
    const answer = await expectStatus(200, agent.act({ ...WRITE, headers: { [name]: 'DELETE', 'X-Team': 'a' } }));
    expect(answer.body._meta.dropped_headers).toEqual([name.toLowerCase()]);
    const { method, env } = last();
    expect(method).toBe('POST');
    expect(Object.values(env)).not.toContain('DELETE');
    expect(env.HTTP_X_TEAM).toBe('a');
  });

  test('no other spelling of the credential’s header is sent beside it', async () => {
    await organisation.platform({ id: 'keyed', manifest: { auth: { type: 'header', name: 'X_Api_Key' } } });
    const keyed = await agentUnder([], { keyed: {} });
    for (const name of ['X-Api-Key', 'x_api_key', 'X_Api-Key', 'X.Api.Key']) {
      const answer = await keyed.act({ ...READ, platform: 'keyed', headers: { [name]: 'evil' } });
      expect(answer.body._meta.dropped_headers).toEqual([name.toLowerCase()]);
      expect(last().env.HTTP_X_API_KEY).toBe(CANARY);
    }
  });

  test('a condition is evaluated on every header that is sent', async () => {
    const guarded = await agentUnder([{ effect: 'deny', when: '"x-danger" in request.headers' }]);
    expect(await guarded.act({ ...READ, headers: { 'X-Danger': '1' } })).toMatchObject({
      status: 403,
      body: { reason: 'denied_by_policy' },
    });
    expect((await guarded.act({ ...READ, headers: { X_Danger: '1' } })).status).toBe(200);
    expect(last().env).not.toHaveProperty('HTTP_X_DANGER');
  });
});

describe('methods', () => {
  test.each([
    '_method=DELETE',
    '.method=DELETE',
    '%2Emethod=DELETE',
    '+_method=DELETE',
    '%20_method=DELETE',
    '-Method=DELETE',
    '%EF%BC%BFmethod=DELETE',
    '[_method]=DELETE',
    '_method[]=DELETE',
    'x[http_method_override=DELETE',
    'a=1;_method=DELETE',
    'X.HTTP.Method=DELETE',
    'x-tunneled-method=DELETE',
  ])('the query ?%s is refused', async (query) => {
    const agent = await agentUnder();
    const answer = await expectStatus(400, agent.act({ ...WRITE, endpoint: `/items?${query}` }));
    expect(answer.body).toMatchObject({ error: 'invalid_endpoint' });
    expect(answer.body.detail).toContain('names a method');
    expect(understood).toEqual([]);
  });

  test.each(['method=card', 'shipping_method=post', 'a[_method]=x', 'methods[]=a'])(
    'the query ?%s is sent (counter-example)',
    async (query) => {
      const agent = await agentUnder();
      expect((await agent.act({ ...WRITE, endpoint: `/items?${query}` })).status).toBe(200);
      expect(last().method).toBe('POST');
    },
  );

  test.each(['_method', '_METHOD', '.method', ' _method', '-method', '＿method', 'X-HTTP-Method-Override'])(
    'the member %j of a form is refused',
    async (name) => {
      const agent = await agentUnder([], { formed: {} });
      const answer = await agent.act({ ...WRITE, platform: 'formed', data: { [name]: 'DELETE', a: 1 } });
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({ error: 'invalid_request' });
      expect(answer.body.detail).toContain('names a method');
      expect(understood).toEqual([]);
    },
  );

  test.each(ENTRY_POINTS)('a JSON member _method that holds a method is refused through %s', async (entryPoint) => {
    const agent = await agentUnder();
    for (const name of ['_method', '_METHOD', '.method', '＿method', 'X-Tunneled-Method'])
      for (const value of ['DELETE', ' patch ']) {
        const answer = await actThrough(entryPoint, agent, { ...WRITE, data: { a: 1, [name]: value } });
        expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_request']);
        expect(answer.body.detail).toContain('names a method');
      }
    expect(understood).toEqual([]);
  });

  test('a method that is data, or nested in a form or JSON, is sent (counter-example)', async () => {
    const agent = await agentUnder([], { formed: {}, demo: {} });
    const data = { method: 'card', payment: { _method: 'card' } };
    expect((await agent.act({ ...WRITE, platform: 'formed', data })).status).toBe(200);
    expect(last()).toMatchObject({ method: 'POST', form: { method: 'card' } });
    for (const entryPoint of ENTRY_POINTS) {
      const members = { _method: 'card', inner: { _method: 'DELETE' }, method: 'DELETE' };
      expect((await actThrough(entryPoint, agent, { ...WRITE, data: members })).status).toBe(200);
      expect(last().method).toBe('POST');
    }
  });
});

describe.each(ENTRY_POINTS)('through %s', (entryPoint) => {
  const act = (agent: TestAgent, call: EntryPointCall) => actThrough(entryPoint, agent, call);

  describe('endpoints that are not in normal form', () => {
    const caller = shared(() => agentUnder());

    test.each([
      '/%zz',
      '/%',
      '/items/%E0%A4',
      '/items/%00',
      '/items%2F7',
      '/items/../7',
      '/items/%2e%2e/7',
      '//items',
      '/items?a=%zz',
    ])('%s is refused and recorded', async (endpoint) => {
      const answer = await act(caller, { ...READ, endpoint });
      expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_endpoint']);
      const { row } = await evidenceOf(world, caller, auditIdOf(answer));
      expect(row).toMatchObject({ result: 'errored', reason: 'invalid_endpoint', platform_id: 'demo' });
      expect(understood).toEqual([]);
    });

    test('such endpoints count as malformed calls', async () => {
      const agent = await agentUnder();
      for (let i = 0; i < 50; i++)
        expect(await act(agent, { ...READ, endpoint: '/%zz' })).toMatchObject({
          status: 400,
          body: { error: 'invalid_endpoint' },
        });
      const halted = await act(agent, READ);
      expect([halted.status, halted.text]).toEqual([403, expect.stringContaining('circuit_breaker_open')]);
    });
  });

  describe('credentials in the query', () => {
    test.each(['api.key=x', '+token=x', 'access%5Btoken=x', 'acc%EF%BD%85ss_token=x', 'auth[token]=x'])(
      '?%s is refused',
      async (query) => {
        const agent = await agentUnder();
        const answer = await act(agent, { ...READ, endpoint: `/items?${query}` });
        expect(answer.body).toMatchObject({ error: 'invalid_endpoint' });
        expect(answer.body.detail).toContain('names a credential');
      },
    );

    test.each(['app.id=x', 'app-id=x', '+app_id=x', 'App_ID[]=x', '[app_id]=x'])(
      'beside the parameter that carries the credential, ?%s is refused',
      async (query) => {
        const agent = await agentUnder([], { queried: {} });
        const answer = await act(agent, { ...READ, platform: 'queried', endpoint: `/items?${query}` });
        expect(answer.body).toMatchObject({ error: 'invalid_endpoint' });
        expect((await act(agent, { ...READ, platform: 'queried', endpoint: '/items?id=x' })).status).toBe(200);
      },
    );
  });

  describe('recipients', () => {
    const SEND = { ...WRITE, platform: 'mail', endpoint: '/messages', scope: 'mail:send' };
    let agent: TestAgent;
    beforeAll(async () => {
      const constraints = JSON.stringify({ recipients: ['@acme.com'] });
      const terms = { scopeList: ['mail:send'], constraints };
      agent = await agentUnder([], { mail: terms, post: terms });
    });

    test.each([
      '/v1/messages',
      '/V1/Messages',
      '/v1/messages.',
      '/v1/messages.json',
      '/v1%2Fmessages',
      '/v1%2Fmessages.json',
    ])('%s is judged as lenient servers read it, also under a wider scope', async (endpoint) => {
      const sent = { ...SEND, platform: 'post', endpoint };
      const answer = await act(agent, { ...sent, data: { emailAddress: 'x@evil.com' } });
      expect(answer.body).toMatchObject({ reason: 'recipient_not_allowed' });
      expect((await act(agent, { ...sent, data: { emailAddress: 'a@acme.com' } })).status).toBe(200);
    });

    test.each(['email_address', 'EmailAddress', 'email-address', 'email.address', 'ｅmailAddress'])(
      'the member %s is judged in addition to emailAddress',
      async (name) => {
        const data = { emailAddress: 'a@acme.com', [name]: 'x@evil.com' };
        const answer = await act(agent, { ...SEND, data });
        expect(answer.body).toMatchObject({ reason: 'recipient_not_allowed' });
        expect((await act(agent, { ...SEND, data: { [name]: 'a@acme.com' } })).status).toBe(200);
      },
    );

    test.each(['email_address\0x', '\0', 'a\u007f'])(
      'a form with a control character in the name %j, at which PHP truncates it, is refused',
      async (name) => {
        const constraints = JSON.stringify({ recipients: ['@acme.com'] });
        const sender = await agentUnder([], { forms: { scopeList: ['mail:send'], constraints } });
        const sent = { ...SEND, platform: 'forms', data: { emailAddress: 'a@acme.com', [name]: 'x@evil.com' } };
        expect(await sender.act(sent)).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
        const raw = await rawClient(() => sender)('POST', '/proxy/forms-main/messages', {
          body: `emailAddress=a%40acme.com&${encodeURIComponent(name)}=x%40evil.com`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        });
        expect(raw.body).toMatchObject({ reason: 'recipient_not_allowed' });
      },
    );

    test.each(['_charset_', '_CHARSET_'])('a form cannot declare another charset with %s', async (name) => {
      const constraints = JSON.stringify({ recipients: ['@acme.com'] });
      const sender = await agentUnder([], { forms: { scopeList: ['mail:send'], constraints } });
      const to = { emailAddress: 'a@acme.com' };
      const sent = { ...SEND, platform: 'forms' };
      expect(await sender.act({ ...sent, data: { ...to, [name]: 'ibm037' } })).toMatchObject({
        status: 400,
        body: { error: 'invalid_request' },
      });
      expect(await sender.act({ ...sent, data: { ...to, [name]: 'UTF-8' } })).toMatchObject({ status: 200 });
      const raw = async (charset: string) =>
        await rawClient(() => sender)('POST', '/proxy/forms-main/messages', {
          body: `emailAddress=a%40acme.com&${name}=${charset}`,
          headers: { 'content-type': 'application/x-www-form-urlencoded' },
        });
      expect((await raw('ibm037')).body).toMatchObject({ reason: 'recipient_not_allowed' });
      expect((await raw('utf-8')).status).toBe(200);
    });

    test.each([
      '+emailAddress',
      'email.address',
      '[email_address]',
      'email_address[]',
      'email[address',
      '%65mailaddress',
      'page=1;emailAddress',
    ])('recipients in the query ?%s= are judged in addition to the body', async (name) => {
      const sent = { ...SEND, data: { emailAddress: 'a@acme.com' } };
      const answer = await act(agent, { ...sent, endpoint: `/messages?${name}=x%40evil.com` });
      expect(answer.body).toMatchObject({ reason: 'recipient_not_allowed' });
      expect((await act(agent, { ...sent, endpoint: `/messages?${name}=b%40acme.com` })).status).toBe(200);
    });
  });

  describe('endpoints of rules', () => {
    let agent: TestAgent;
    beforeAll(async () => {
      const endpoints = ['/admin/**', '/items/secret', '/projects/*/variables'];
      agent = await agentUnder([{ effect: 'deny', endpoints }], { wide: {} });
    });

    test.each([
      '/projects/1/variables.json',
      '/projects/1/Variables.JSON',
      '/items/secret.json',
      '/admin.json',
      '/admin./x',
      '/admin%20/x',
      '/items/secret.',
      '/items/secret..',
      '/items/secret%20',
      '/items/secret%20.',
      '/items/secret.json%20',
      '/%EF%BD%81dmin/x',
    ])('%s is denied, as lenient servers read it', async (endpoint) => {
      const answer = await act(agent, { ...READ, platform: 'wide', endpoint });
      expect(answer.body).toMatchObject({ reason: 'denied_by_policy' });
    });

    test.each(['/projects/1/variables.json/x', '/items/secrets', '/items/.secret', '/administration', '/a.json'])(
      '%s does not match (counter-example)',
      async (endpoint) => {
        expect((await act(agent, { ...READ, platform: 'wide', endpoint })).status).toBe(200);
      },
    );

    test('an allow rule matches no other spelling', async () => {
      const policy = await organisation.policy([{ effect: 'allow', endpoints: ['/items/open'] }]);
      const narrow = await organisation.agent({ policy, grants: { wide: {} } });
      expect((await act(narrow, { ...READ, platform: 'wide', endpoint: '/items/open' })).status).toBe(200);
      for (const endpoint of ['/items/open.json', '/items/open.', '/items/open%20', '/items/%EF%BD%8Fpen'])
        expect((await act(narrow, { ...READ, platform: 'wide', endpoint })).body.reason).toBe('denied_by_policy');
    });

    test('a format suffix does not bypass the scope of an endpoint', async () => {
      const reader = await agentUnder([], { forge: { scopeList: ['demo:read'] } });
      const answer = await act(reader, { ...READ, platform: 'forge', endpoint: '/projects/1/variables.json' });
      expect(answer.body).toMatchObject({ reason: 'endpoint_scope_mismatch' });
      expect((await act(reader, { ...READ, platform: 'forge', endpoint: '/projects/1/readme.md' })).status).toBe(200);
    });
  });

  describe('conditions on the query', () => {
    const outcome = async (rule: object, query: string) => {
      const policy = await organisation.policy([...('allow' in rule ? [] : [{ effect: 'allow' }]), rule]);
      const agent = await organisation.agent({ policy });
      const answer = await act(agent, { ...READ, endpoint: `/items${query}` });
      return answer.status === 200 ? 'sent' : answer.body.reason;
    };

    test.each([
      '?admin=1',
      '?ADMIN=1',
      '?admin[]=1',
      '?a=1;admin=1',
      '?+admin=1',
      '?admin.=1',
      '?[admin]=1',
      '?ad%6Din=1',
      '?%EF%BD%81dmin=1',
    ])('a deny rule matches %s', async (query) => {
      expect(await outcome({ effect: 'deny', when: '"admin" in request.query' }, query)).toBe('denied_by_policy');
      expect(await outcome({ effect: 'deny', when: 'has(request.query_all.admin)' }, query)).toBe('denied_by_policy');
      const one = 'has(request.query.admin) && request.query.admin == "1"';
      expect(await outcome({ effect: 'deny', when: one }, query)).toBe('denied_by_policy');
    });

    test.each(['?administrator=1', '?a=admin', '?a[admin]=1', '?_admin=1', ''])(
      '%s does not match (counter-example)',
      async (query) => {
        expect(await outcome({ effect: 'deny', when: '"admin" in request.query' }, query)).toBe('sent');
      },
    );

    test('names of several words match in every way of writing them', async () => {
      const deny = { effect: 'deny', when: '"max_results" in request.query' };
      for (const query of ['?maxResults=9', '?max-results=9', '?max.results=9', '?max_results=9'])
        expect(await outcome(deny, query)).toBe('denied_by_policy');
    });

    test('two spellings of a name, one of which a condition reads, match a deny rule', async () => {
      const deny = { effect: 'deny', when: 'has(request.query.limit) && int(request.query.limit) > 10' };
      expect(await outcome(deny, '?limit=1')).toBe('sent');
      expect(await outcome(deny, '?limit=1&LIMIT=99')).toBe('denied_by_policy');
      const every = {
        effect: 'deny',
        when: 'has(request.query_all.limit) && request.query_all.limit.exists(n, int(n) > 10)',
      };
      expect(await outcome(every, '?limit=1&LIMIT=99')).toBe('denied_by_policy');
      expect(await outcome(every, '?limit=1&LIMIT=9')).toBe('sent');
    });

    test('other spellings do not loosen an allow rule, whether its condition requires or excludes the name', async () => {
      const dry = { effect: 'allow', when: '"dry_run" in request.query', allow: 'only' };
      const { allow: _, ...rule } = dry;
      const only = async (when: string, query: string) => {
        const policy = await organisation.policy([{ ...rule, when }]);
        const agent = await organisation.agent({ policy });
        return (await act(agent, { ...READ, endpoint: `/items${query}` })).status;
      };
      expect(await only('"dry_run" in request.query', '?dry_run=1')).toBe(200);
      expect(await only('"dry_run" in request.query', '?DRY_RUN=1')).toBe(403);
      expect(await only('!("admin" in request.query)', '?page=1')).toBe(200);
      expect(await only('!("admin" in request.query)', '?ADMIN=1')).toBe(403);
    });

    // Through /proxy a body declares itself whether it is a form.
    if (entryPoint === 'POST /v1/actions')
      test('members of a form match like the query', async () => {
        const when = 'has(request.body.amount) && request.body.amount > 10';
        const formed = await agentUnder([{ effect: 'deny', when }], { formed: {}, demo: {} });
        const sent = (platform: string, data: object) => act(formed, { ...WRITE, platform, data });
        for (const name of ['amount', 'Amount', ' amount', 'amount.'])
          expect((await sent('formed', { [name]: 99 })).body.reason).toBe('denied_by_policy');
        expect((await sent('formed', { Amount: 9 })).status).toBe(200);
        expect((await sent('formed', { nested: { Amount: 99 } })).status).toBe(200);
      });
  });
});
