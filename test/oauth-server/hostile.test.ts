/** Attacks on the authorization server: where codes are sent, how they are sent, and what is accepted as a token. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { expectStatus, send } from '../world/agent.ts';
import { askConsent, browserOf, CALLBACK, openConsent } from '../world/mcp/person.ts';
import { callMcp, OAuthClient, pkce } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, givenWorld, shared, startWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`the authorization server on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation({ rules: DEMO_RULES }));
  beforeAll(async () => {
    baseUrl = world.running.baseUrl;
  });
  const browser = () => browserOf(world, organisation.owner);
  const registered = async (...redirect_uris: string[]) => {
    const client = new OAuthClient(world);
    await expectStatus(201, client.register(redirect_uris.length > 0 ? { redirect_uris } : {}));
    return client;
  };
  /** Returns the first response, without following redirects. */
  const ask = (client: OAuthClient, changed: Record<string, string | undefined> = {}, more = '') =>
    send(client.address(changed) + more, {});

  describe('where the code is sent', () => {
    const LOOPBACK = 'http://127.0.0.1:9/callback';
    test.each([
      ['another name of this machine', 'http://localhost:9/callback'],
      ['another address of it', 'http://[::1]:9/callback'],
      ['a short one', 'http://127.1:9/callback'],
      ['a hexadecimal one', 'http://0x7f.0.0.1:9/callback'],
      ['one that begins the same', 'http://127.0.0.1.evil.example:9/callback'],
      ['a user that looks like it', 'http://127.0.0.1:9@evil.example/callback'],
      ['a user of it', 'http://evil@127.0.0.1:9/callback'],
      ['a user without a name', 'http://@127.0.0.1:9/callback'],
      ['a backslash', 'http://evil.example\\@127.0.0.1:9/callback'],
      ['a port that there is not', 'http://127.0.0.1:99999/callback'],
      ['a port that is none', 'http://127.0.0.1:9x/callback'],
      ['a fragment', 'http://127.0.0.1:9/callback#x'],
      ['a query', 'http://127.0.0.1:77/callback?x'],
      ['a slash more', 'http://127.0.0.1:9/callback/'],
      ['another case', 'http://127.0.0.1:9/Callback'],
      ['a dot', 'http://127.0.0.1:9/./callback'],
      ['an encoded letter', 'http://127.0.0.1:9/c%61llback'],
      ['TLS', 'https://127.0.0.1:9/callback'],
      ['no scheme', '//127.0.0.1:9/callback'],
    ])('%s is refused without a redirect', async (_what, redirect_uri) => {
      const client = await registered(LOOPBACK);
      const { status, headers, text } = await ask(client, { redirect_uri });
      expect([status, headers.get('location')], text).toEqual([400, null]);
      expect((await ask(client, { redirect_uri: LOOPBACK })).status).toBe(303);
    });

    test.each([undefined, ''])(
      'without a redirect URI (%o) the only registered one is used; with several registered ones the request is refused',
      async (redirect_uri) => {
        const person = browser();
        const page = await openConsent(person, (await registered(LOOPBACK)).address({ redirect_uri }));
        const asked = (await askConsent(person, page, 'request')).body;
        expect(asked.client).toMatchObject({ redirect_host: '127.0.0.1', redirect_uri: LOOPBACK });
        const several = await registered(LOOPBACK, 'https://app.example/cb');
        expect((await ask(several, { redirect_uri })).status).toBe(400);
      },
    );

    test('except on loopback, the redirect URI has to match exactly, port included', async () => {
      const client = await registered('https://app.example/cb?a=1', 'app.example:/cb');
      for (const redirect_uri of ['https://app.example/cb?a=1', 'app.example:/cb'])
        expect((await ask(client, { redirect_uri })).status).toBe(303);
      for (const redirect_uri of [
        'https://app.example:444/cb?a=1',
        'https://app.example:443/cb?a=1',
        'https://app.example/cb',
        'https://app.example/cb?a=1&b=2',
        'https://APP.example/cb?a=1',
        'https://app.example./cb?a=1',
        'app.example:/cb/',
        'app.example://cb',
      ]) {
        const { status, headers } = await ask(client, { redirect_uri });
        expect([redirect_uri, status, headers.get('location')]).toEqual([redirect_uri, 400, null]);
      }
    });

    test('on loopback any port is accepted, for each registered host name (RFC 8252 section 7.3)', async () => {
      const client = await registered('http://127.0.0.1/cb', 'http://[::1]:5/cb', 'http://localhost/cb');
      for (const host of ['127.0.0.1', '[::1]', 'localhost'])
        for (const port of ['', ':1', ':65535'])
          expect((await ask(client, { redirect_uri: `http://${host}${port}/cb` })).status).toBe(303);
    });

    test('an error page escapes values of the request', async () => {
      const hostile = '"><script>alert(1)</script>';
      for (const changed of [
        { client_id: hostile },
        { redirect_uri: hostile },
        { response_type: hostile, client_id: 'x' },
      ]) {
        const { text, headers } = await expectStatus(400, ask(await registered(), changed));
        expect(text).not.toContain('<script>');
        expect(headers.get('content-security-policy')).toContain("default-src 'none'");
        expect(headers.get('content-type')).toContain('text/html');
        expect(headers.get('x-content-type-options')).toBe('nosniff');
      }
    });
  });

  describe('how the response is sent', () => {
    const back = async (changed: Record<string, string | undefined> = {}, more = '') => {
      const client = await registered();
      const person = browser();
      const page = await openConsent(person, client.address(changed) + more);
      const decided = await askConsent(person, page, 'decision', {
        allow: true,
        name: crypto.randomUUID(),
        grants: [],
      });
      return { client, url: new URL((await person.get(decided.body.location)).url) };
    };

    test('with the code, the unchanged state and iss (RFC 9207), and nothing else', async () => {
      const state = 'a b&c=d#é%00?<>';
      const { url } = await back({ state });
      expect(url.href.split('?')[0]).toBe(CALLBACK);
      expect(Object.fromEntries(url.searchParams)).toEqual({ code: expect.any(String), state, iss: baseUrl });
      expect([...(await back({ state: undefined })).url.searchParams.keys()].toSorted()).toEqual(['code', 'iss']);
    });

    test.each([
      ['in a fragment', '&response_mode=fragment'],
      ['in a form', '&response_mode=form_post'],
      ['in a message', '&response_mode=web_message'],
      ['in a JWT', '&response_mode=jwt'],
    ])('never %s: only response mode query is supported', async (_what, more) => {
      const { url } = await back({}, more);
      expect([url.hash, url.searchParams.has('code')]).toEqual(['', true]);
    });

    test.each([
      ['prompt=none', { prompt: 'none' }],
      ['another response type', { response_type: 'token' }],
      ['no PKCE', { code_challenge: undefined, code_challenge_method: undefined }],
      ['another resource', { resource: 'https://else.example/' }],
    ])('an invalid request (%s) leads to no other site before a person has clicked', async (_what, changed) => {
      const client = await registered();
      const at = async (redirect_uri: string) => {
        await client.register({ redirect_uris: [redirect_uri] });
        return await send(client.address({ redirect_uri, ...changed }), {});
      };
      for (const uri of ['https://evil.example/cb', 'https://127.0.0.1.evil.example/cb', 'evil.example:/cb']) {
        const page = await at(uri);
        expect([page.status, page.headers.get('location')], page.text).toEqual([400, null]);
        expect(page.text).toContain('Nothing was granted');
        const { hostname, protocol } = new URL(uri);
        const [, link = ''] = /href="(\S+)">Go to/.exec(page.text) ?? [];
        expect(link.startsWith(uri.replace(':/cb', ':')), link).toBe(true);
        expect(page.text).toContain(`Go to ${hostname || protocol}`);
        expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
      }
      // A program on the person's machine waits for the error.
      for (const uri of [CALLBACK, 'http://localhost:1234/callback']) {
        const told = await at(uri);
        expect([told.status, told.headers.get('location')?.startsWith(uri)]).toEqual([303, true]);
      }
    });

    test('unsupported parameters are ignored, including request objects, and nothing is fetched', async () => {
      const seen = world.upstream.seen.length;
      const inner = Buffer.from(JSON.stringify({ redirect_uri: 'https://evil.example/', scope: 'openid' })).toString(
        'base64url',
      );
      const more = [
        `request=eyJhbGciOiJub25lIn0.${inner}.`,
        `request_uri=${encodeURIComponent(`${world.upstream.url}/request`)}`,
        `claims=${encodeURIComponent('{"id_token":{"email":null}}')}`,
        'id_token_hint=x',
        'max_age=0',
        'nonce=x',
        'code_challenge_method2=plain',
        'what?=is&this?',
      ];
      const { client, url } = await back({}, `&${more.join('&')}`);
      const tokens = (await client.redeem(url.searchParams.get('code')!)).body;
      expect(Object.keys(tokens).toSorted()).toEqual([
        'access_token',
        'expires_in',
        'refresh_token',
        'scope',
        'token_type',
      ]);
      expect(world.upstream.seen.length).toBe(seen);
    });

    test.each(['client_id', 'redirect_uri', 'scope', 'state', 'code_challenge', 'response_type'])(
      'a request with a duplicate %s is refused',
      async (name) => {
        const { status, headers } = await ask(await registered(), {}, `&${name}=else`);
        if (status === 303) expect(new URL(headers.get('location')!).searchParams.get('error')).toBe('invalid_request');
        else expect(status).toBe(400);
      },
    );

    test('responses with tokens and consents are not cacheable', async () => {
      const client = await registered();
      const person = browser();
      const page = await openConsent(person, client.address());
      expect((await askConsent(person, page, 'request')).headers.get('cache-control')).toContain('no-store');
      const decision = { allow: true, name: crypto.randomUUID(), grants: [] };
      const { location } = (await askConsent(person, page, 'decision', decision)).body;
      const code = new URL((await person.get(location)).url).searchParams.get('code')!;
      const redeemed = await client.redeem(code);
      expect(redeemed.headers.get('cache-control')).toContain('no-store');
      expect((await client.redeem(code)).headers.get('cache-control')).toContain('no-store');
    });

    test('the cookie that binds the request to the browser is limited to that request’s path, and no script can read it', async () => {
      const client = await registered();
      const cookies = (await ask(client)).headers.getSetCookie();
      for (const [name, path] of [
        ['svc_consent', '/oauth/consent/'],
        ['svc_resume', '/oauth/authorize/'],
      ] as const) {
        const cookie = cookies.find((one) => one.startsWith(`${name}=`))!;
        expect(cookie).toMatch(/; httponly/i);
        expect(cookie).toMatch(/; samesite=lax/i);
        expect(cookie).toMatch(new RegExp(`; path=${path}[\\w-]{20,}(;|$)`, 'i'));
        expect(cookie).not.toMatch(/; domain=/i);
      }
    });
  });

  describe('proof of the one who began (PKCE)', () => {
    test.each([
      ['no method: it would be plain', { code_challenge_method: undefined }],
      ['a method that there is not', { code_challenge_method: 'S512' }],
      ['the method in small letters', { code_challenge_method: 's256' }],
      ['a short challenge', { code_challenge: 'x'.repeat(42) }],
      ['a long one', { code_challenge: 'x'.repeat(129) }],
      ['an empty one', { code_challenge: '' }],
      ['no challenge', { code_challenge: undefined }],
    ])('%s is refused', async (_what, changed) => {
      const { status, headers } = await ask(await registered(), changed);
      expect(status).toBe(303);
      const told = new URL(headers.get('location')!);
      expect(told.href.split('?')[0]).toBe(CALLBACK);
      expect(Object.fromEntries(told.searchParams)).toMatchObject({ error: 'invalid_request', iss: baseUrl });
    });

    test('no other value than the verifier is accepted, not even the challenge', async () => {
      const client = await registered();
      for (const code_verifier of [
        client.pair.challenge,
        '',
        'x',
        `${client.pair.verifier}x`,
        pkce().verifier,
        undefined,
      ]) {
        const answer = await client.redeem(await client.code(browser()), { code_verifier });
        expect([code_verifier, answer.status], answer.text).toEqual([code_verifier, 400]);
      }
    });
  });

  describe('the resource of a token (RFC 8707)', () => {
    const others = () => [
      'https://else.example/mcp',
      `${baseUrl}/v1`,
      `${baseUrl}/mcp/`,
      `${baseUrl}/MCP`,
      `${baseUrl}/mcp?x`,
      `${baseUrl}/mcp#x`,
      'urn:x',
      '/mcp',
    ];

    test('can be no other one, in the request, when redeeming and when refreshing', async () => {
      for (const resource of others()) {
        const { status, headers } = await ask(await registered(), { resource });
        expect([resource, status]).toEqual([resource, 303]);
        expect(new URL(headers.get('location')!).searchParams.get('error')).toBe('invalid_target');
      }
      const client = await registered();
      const tokens = await client.tokens(browser());
      for (const resource of others()) {
        const redeemed = await client.redeem(await client.code(browser()), { resource });
        expect([resource, redeemed.status]).toEqual([resource, 400]);
        const refreshed = await client.refresh(tokens.refresh_token, { resource });
        expect([resource, refreshed.status, refreshed.body.error]).toEqual([resource, 400, 'invalid_target']);
      }
      // A refused request does not use the token: as the second use of a used one, this one would end all access.
      world.clock.skewMs = MINUTE_MS;
      onTestFinished(() => {
        world.clock.skewMs = 0;
      });
      expect((await client.refresh(tokens.refresh_token, { resource: `${baseUrl}/mcp` })).status).toBe(200);
    });

    test.each<[string, (baseUrl: string) => string]>([
      // RFC 3986 section 6.2.2.1
      ['with other letter case in its scheme and host', (base) => `${base.toUpperCase()}/mcp`],
      // /.well-known/oauth-protected-resource names it.
      ['the broker as a whole', (base) => base],
      ['the broker as a whole, with a slash', (base) => `${base}/`],
    ])('may be %s: the token is for /mcp', async (_what, write) => {
      const resource = write(baseUrl);
      const client = await registered();
      const redeemed = await client.redeem(await client.code(browser(), { resource }), { resource });
      expect([redeemed.status, redeemed.body.scope], redeemed.text).toEqual([200, 'mcp:read mcp:write']);
      const refreshed = await client.refresh(redeemed.body.refresh_token, { resource });
      expect([refreshed.status, refreshed.body.scope], refreshed.text).toEqual([200, 'mcp:read mcp:write']);
      const [, claims = ''] = refreshed.body.access_token.split('.');
      expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ aud: `${baseUrl}/mcp` });
      expect((await callMcp(baseUrl, refreshed.body.access_token)).status).toBe(200);
    });

    test('cannot include another resource', async () => {
      const more = `&resource=${encodeURIComponent('https://else.example/mcp')}`;
      const { status, headers } = await ask(await registered(), {}, more);
      expect(status).toBe(303);
      expect(new URL(headers.get('location')!).searchParams.get('error')).toBe('invalid_target');
    });

    test('a token is accepted in the header only', async () => {
      const { access_token } = await new OAuthClient(world).tokens(browser());
      const message = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
      const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
      const url = `${baseUrl}/mcp?access_token=${access_token}`;
      expect((await send(url, { method: 'POST', headers, body: message })).status).toBe(401);
      const cookie = `access_token=${access_token}`;
      expect(
        (await send(`${baseUrl}/mcp`, { method: 'POST', headers: { ...headers, cookie }, body: message })).status,
      ).toBe(401);
      expect((await callMcp(baseUrl, access_token)).status).toBe(200);
    });
  });

  test('tokens are issued only for a code or a refresh token', async () => {
    const client = await registered();
    for (const grant_type of [
      'client_credentials',
      'password',
      'implicit',
      'urn:ietf:params:oauth:grant-type:device_code',
      'urn:ietf:params:oauth:grant-type:token-exchange',
      'urn:ietf:params:oauth:grant-type:jwt-bearer',
      'constructor',
    ]) {
      const answer = await client.post('/oauth/token', { grant_type, client_id: client.id, scope: 'mcp:read' });
      expect([grant_type, answer.status, answer.body.error]).toEqual([grant_type, 400, 'unsupported_grant_type']);
    }
    for (const [method, path] of [
      ['GET', '/oauth/token'],
      ['GET', '/oauth/register'],
      ['GET', '/oauth/revoke'],
      ['POST', '/oauth/authorize'],
      ['POST', '/oauth/introspect'],
      ['GET', '/oauth/userinfo'],
    ] as const)
      expect([path, (await send(baseUrl + path, { method })).status]).toEqual([path, expect.toBeOneOf([404, 405])]);
  });

  test('a code cannot be redeemed after an owner has revoked the authorisation', async () => {
    const client = await registered();
    const code = await client.code(browser());
    const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
    const { id } = authorisations.find((one: { client: { id: string } }) => one.client.id === client.id);
    expect((await organisation.ask('DELETE', `/owner/mcp-authorisations/${id}`)).status).toBe(200);
    const answer = await client.redeem(code);
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_grant']);
  });
});

test('with an https address the cookies of the consent are sent over https only', async () => {
  const world = await startWorld('sqlite', { BASE_URL: 'https://broker.example' });
  const { handle } = world.running.services.authorization;
  const { serveHandler } = await import('../world/listen.ts');
  const at = await serveHandler(handle);
  const client = new OAuthClient(world, at);
  await client.register();
  const answer = await expectStatus(303, send(client.address({ resource: 'https://broker.example/mcp' }), {}));
  const cookies = answer.headers.getSetCookie().filter((one) => /^svc_(consent|resume)=/.test(one));
  expect(cookies).toHaveLength(2);
  for (const cookie of cookies) expect(cookie).toMatch(/; secure/i);
  // Cookies that another host could set have no effect without this one.
  const [own] = answer.headers.getSetCookie().filter((one) => one.startsWith('__Host-'));
  expect(own).toMatch(/^__Host-svc_client=[\w-]{43}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax; Secure$/);
});
