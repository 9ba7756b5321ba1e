/**
 * Text that must not reach a store: U+0000, which PostgreSQL refuses, and lone surrogates, which it silently replaces. Wherever a request can contain
 * such text, both stores answer as for an unknown name, and no statement fails.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import type { Route } from '../../broker/http/route.ts';
import { ROUTES } from '../../broker/http/routes.ts';
import { github } from '../../broker/platforms/builtin/github.ts';
import { send, type TestAgent } from '../world/agent.ts';
import { browserOf } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { thorough } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

/** In an address, a lone surrogate can only be encoded as bytes that are not valid UTF-8. */
const IN_ADDRESS = ['%00', 'a%00b', '%ED%A0%80'];
const NUL = 'a%00b';
const IN_JSON = [String.raw`\u0000`, String.raw`a\u0000b`, String.raw`\ud800`, String.raw`a\udc00`];
/** Parameters of routes and libraries that declare no query. */
const UNDECLARED = ['organisation', 'issuer', 'state', 'code', 'error', 'page', 'service', 'iss', 'client_id'];
const OAUTH = [
  ['POST', '/oauth/token'],
  ['POST', '/oauth/revoke'],
  ['GET', '/oauth/authorize'],
  ['POST', '/oauth/authorize'],
] as const;
const OAUTH_FIELDS = {
  grant_type: 'authorization_code',
  response_type: 'code',
  client_id: 'a',
  client_secret: 'a',
  redirect_uri: 'http://127.0.0.1/a',
  code: 'a',
  code_verifier: 'a'.repeat(43),
  code_challenge: 'a'.repeat(43),
  code_challenge_method: 'S256',
  refresh_token: 'a',
  token: 'a',
  token_type_hint: 'refresh_token',
  scope: 'mcp:read',
  state: 'a',
  resource: 'a',
  client_assertion: 'a',
  client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
};

const base64 = (text: string) => Buffer.from(text).toString('base64');
const inJwt = (part: string) => Buffer.from(part).toString('base64url');
/** All of them in a thorough run; otherwise one per place, in rotation: all places use the same decoding. */
const inTurn = <T>(all: readonly T[]): (() => readonly T[]) => {
  let turn = 0;
  return () => (thorough ? all : [all[turn++ % all.length]!]);
};
/** A JWT without a valid signature. */
const unsigned = (claims: string, header = '{"alg":"RS256"}') => `${inJwt(header)}.${inJwt(claims)}.${inJwt('x')}`;

describe.each(ONE_STORE)(`text that cannot be stored on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());

  const session = () => `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}`;
  function bearerFor({ auth }: Route): Record<string, string> {
    if (auth === 'none') return {};
    if (auth === 'git') return { authorization: `Basic ${base64(`git:${agent.token()}`)}` };
    return { authorization: ['agent', 'raw'].includes(auth) ? `Bearer ${agent.token()}` : session() };
  }
  const named = ({ method, path }: Route) => `${method} ${path}`;
  const filled = ({ path }: Route) => path.replaceAll(/\{\w+\}/g, organisation.id);
  const ask = (route: Route, path: string, body: string | undefined = route.body && '{}') =>
    send(world.running.baseUrl + path, {
      method: route.method,
      headers: { ...bearerFor(route), ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body }),
    });
  const isStream = ({ path }: Route) => path === '/owner/events';

  test('in the path of any route', async () => {
    const routes = ROUTES.filter(({ path }) => path.includes('{'));
    expect(routes.length).toBeGreaterThan(80);
    const texts = inTurn(IN_ADDRESS);
    for (const route of routes)
      for (const text of texts()) {
        const path = route.path.replaceAll(/\{\w+\}/g, text);
        const answer = await ask(route, path);
        expect([400, 401, 403, 404], `${named(route)} ${path} ${answer.text}`).toContain(answer.status);
      }
  });

  test('in any parameter of the query of any route: a 400 that names it', async () => {
    const asked = ROUTES.flatMap((route) => Object.keys(route.query?.shape ?? {}).map((name) => ({ route, name })));
    expect(asked.length).toBeGreaterThan(50);
    for (const { route, name } of asked) {
      const { status, text } = await ask(route, `${filled(route)}?${name}=${NUL}`);
      // A body is read before the query, and `{}` is not valid everywhere.
      const isNamed = route.body !== undefined || route.auth === 'git' || text.includes(`${name}: `);
      expect([status, isNamed], `${named(route)} ${name} ${text}`).toEqual([400, true]);
    }
  });

  test('in a query parameter that no route declares', async () => {
    for (const route of ROUTES.filter((one) => one.method === 'GET' && !one.query && !isStream(one))) {
      // Routes without or with any authentication are requested with all of them in one address, so that code that reads one directly is reached.
      const isOpen = !['owner', 'agent'].some((who) => route.auth.includes(who));
      const all = UNDECLARED.map((name) => `${name}=${NUL}`);
      for (const query of isOpen || thorough ? all : [all.join('&')]) {
        const { status, text } = await ask(route, `${filled(route)}?${query}`);
        expect(status, `${named(route)} ${query} ${text}`).toBeLessThan(500);
      }
    }
  });

  test('in any member of the body of any route, and in its name', async () => {
    const routes = ROUTES.filter(({ body }) => body);
    expect(routes.length).toBeGreaterThan(80);
    const texts = inTurn([String.raw`a\u0000b`, String.raw`\ud800`]);
    for (const route of routes) {
      const names = Object.keys((route.body as { shape?: object }).shape ?? {});
      const bodies = [
        ...names.flatMap((name) => texts().map((text) => `{"${name}":"${text}"}`)),
        ...texts().map((text) => `{"${text}":1}`),
        ...texts().map((text) => `{"a":[{"b":"${text}"}]}`),
      ];
      for (const body of bodies) {
        const answer = await ask(route, filled(route), body);
        if (route.auth !== 'owner') await world.forgive();
        expect([400, 401, 403, 404, 409, 413], `${named(route)} ${body} ${answer.text}`).toContain(answer.status);
      }
    }
  });

  test('in the cursor of a list of agents, which holds the last name of a page, or a time', async () => {
    const page = async (sort: string, key: string) => {
      const cursor = inJwt(`["${sort}",${key},"${organisation.id}"]`);
      const { status, body } = await organisation.ask('GET', `/owner/agents?sort=${sort}&cursor=${cursor}`);
      return [sort, key, status, body.error];
    };
    for (const sort of ['name', 'owner', 'policy', 'status', 'last_call', '-name'])
      for (const text of IN_JSON)
        expect(await page(sort, `"${text}"`)).toEqual([sort, `"${text}"`, 400, 'invalid_request']);
    for (const number of ['0.5', '1e300', '-1e-7', '9007199254740992'])
      expect(await page('created', number)).toEqual(['created', number, 400, 'invalid_request']);
    // Controls.
    expect(await page('name', '"a"')).toEqual(['name', '"a"', 200, undefined]);
    expect(await page('created', '1700000000000')).toEqual(['created', '1700000000000', 200, undefined]);
  });

  test('in any field of OAuth', async () => {
    const texts = inTurn(IN_ADDRESS.slice(1));
    for (const [method, path] of OAUTH)
      for (const grant of path === '/oauth/token' || thorough
        ? ['authorization_code', 'refresh_token']
        : ['refresh_token'])
        for (const name of Object.keys(OAUTH_FIELDS))
          for (const text of texts()) {
            const fields = Object.entries({ ...OAUTH_FIELDS, grant_type: grant }).map(
              ([key, value]) => `${key}=${key === name ? text : encodeURIComponent(value)}`,
            );
            const some = [fields.join('&'), `${name === 'client_id' ? '' : 'client_id=a&'}${name}=${text}`];
            for (const form of some) {
              const { status, text: said } = await send(
                `${world.running.baseUrl}${path}${method === 'GET' ? `?${form}` : ''}`,
                {
                  method,
                  ...(method === 'POST' && {
                    body: form,
                    headers: { 'content-type': 'application/x-www-form-urlencoded' },
                  }),
                },
              );
              expect(status, `${method} ${path} ${form} ${said}`).toBeLessThan(500);
              expect(status, `${method} ${path} ${form} ${said}`).toBeGreaterThanOrEqual(
                path === '/oauth/revoke' ? 200 : 400,
              );
            }
          }
  });

  test('in other identifiers of an OAuth client', async () => {
    const answers = [];
    for (const id of ['\0', 'a\0b', 'a%00b', 'https://a\0.example/client']) {
      const headers = { authorization: `Basic ${base64(`${id}:x`)}` };
      answers.push(await new OAuthClient(world).post('/oauth/token', { grant_type: 'refresh_token' }, headers));
      const assertion = unsigned(JSON.stringify({ iss: id, sub: id, jti: id, aud: id, exp: 9e9 }));
      const form = { grant_type: 'refresh_token', client_assertion: assertion };
      const type = OAUTH_FIELDS.client_assertion_type;
      answers.push(await new OAuthClient(world).post('/oauth/token', { ...form, client_assertion_type: type }));
    }
    for (const { status, text } of answers) expect([400, 401], text).toContain(status);
  });

  test('in the registration of an OAuth client', async () => {
    const texts = inTurn(['\0', 'a\0b', '\ud800']);
    for (const name of ['client_name', 'client_uri', 'scope', 'software_id', 'logo_uri', 'contacts', 'a'])
      for (const text of texts()) {
        const answer = await new OAuthClient(world).register({ [name]: name === 'contacts' ? [text] : text });
        expect([201, 400], `${name} ${answer.text}`).toContain(answer.status);
        expect(answer.body.client_name ?? '', answer.text).not.toMatch(/\0|\p{Cs}/u);
      }
  });

  test('in the claims and the header of a token', async () => {
    const texts = inTurn(['\0', 'a\0b', '\ud800']);
    const tokens = ['agent_id', 'owner_id', 'session_id', 'sub', 'aud', 'jti', 'iss'].flatMap((claim) =>
      texts().map((text) => agent.token({ [claim]: text })),
    );
    tokens.push(agent.token({}, { kid: '\0' }), unsigned('{"iss":"\\u0000"}', '{"alg":"ES256","typ":"svc-child+jwt"}'));
    for (const token of tokens)
      for (const [path, headers] of [
        ['/v1/agents/me', { authorization: `Bearer ${token}` }],
        ['/owner/me', { authorization: `Bearer ${token}` }],
        ['/mcp', { authorization: `Bearer ${token}` }],
        ['/proxy/demo-main/items', { 'x-svc-authorization': `Bearer ${token}` }],
      ] as const) {
        const { status, text } = await send(world.running.baseUrl + path, { headers });
        expect(status, `${path} ${text}`).toBeLessThan(500);
      }
  });

  test('in the user name of git, which names a connection', async () => {
    await organisation.platform({ id: 'codehost', manifest: { ...github, base_url: world.upstream.url } });
    const pulling = await organisation.agent({
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: ['codehost:contents.read'] } },
    });
    for (const user of ['connection.\0', 'connection.a\0b', '\0']) {
      const { status, text } = await send(`${world.running.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, {
        headers: { authorization: `Basic ${base64(`${user}:${pulling.token()}`)}` },
      });
      expect([403, 404, 412, 502], text).toContain(status);
    }
  });

  describe('in `data`, where calls may contain U+0000', () => {
    let caller: TestAgent;
    beforeAll(async () => {
      const scopes = { 'mail:send': ['POST /items'] };
      await organisation.platform({ id: 'mail', manifest: { scopes, recipients: { 'POST /items': ['/to'] } } });
      caller = await organisation.agent({
        rules: [{ effect: 'require_approval', when: 'request.body.a == "b"' }, ...ALLOW_ALL],
        grants: {
          demo: {},
          mail: { scopeList: ['mail:send'], constraints: JSON.stringify({ recipients: ['@acme.example'] }) },
        },
      });
    });
    test.each([
      ['a duplicate member name', 'demo', String.raw`{"a\u0000":1,"a\u0000":2}`, 400],
      ['a member name with a number out of range', 'demo', String.raw`{"\u0000":1e999}`, 400],
      ['a value of a held call', 'demo', String.raw`{"a":"b","\u0000":"\u0000"}`, 202],
      ['a condition whose member is missing', 'demo', String.raw`{"a\u0000":"b"}`, 202],
      ['a recipient', 'mail', String.raw`{"a":"c","to":"a\u0000@x.example"}`, 403],
    ])('%s', async (_what, platform, data, status) => {
      const scope = platform === 'mail' ? 'mail:send' : 'demo:write';
      const call = `{"platform":"${platform}","scope":"${scope}","endpoint":"/items","method":"POST","data":${data}}`;
      const answer = await caller.act(call);
      await world.forgive();
      expect(answer.status, answer.text).toBe(status);
    });
  });

  test('in any argument of any tool of /mcp', async () => {
    const { access_token } = await new OAuthClient(world).tokens(
      browserOf(world, organisation.owner),
      {},
      { name: 'tools', grants: [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }] },
    );
    const rpc = async (method: string, params: string) => {
      const answer = await send(`${world.running.baseUrl}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${access_token}`,
        },
        body: `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`,
      });
      await world.forgive();
      const data = /^data: (\{.*)$/m.exec(answer.text)?.[1];
      return { status: answer.status, text: data ?? answer.text };
    };
    const { tools } = JSON.parse((await rpc('tools/list', '{}')).text).result;
    expect(tools.length).toBeGreaterThan(5);
    const USUAL = { platform: 'demo', scope: 'demo:read', endpoint: '/items', approval_id: organisation.id };
    const texts = inTurn(IN_JSON);
    for (const { name, inputSchema } of tools) {
      const members = Object.keys(inputSchema.properties ?? {});
      for (const member of members)
        for (const text of texts()) {
          const others = Object.entries(USUAL).filter(([key]) => key !== member && members.includes(key));
          const given = [...others.map(([key, value]) => `"${key}":"${value}"`), `"${member}":"${text}"`].join(',');
          const answer = await rpc('tools/call', `{"name":"${name}","arguments":{${given}}}`);
          expect(answer.status, `${name} ${given} ${answer.text}`).toBeLessThan(500);
          expect(answer.text, `${name} ${given}`).not.toMatch(/internal_error|-32603/);
        }
    }
  });
});
