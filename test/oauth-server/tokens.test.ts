/** The authorization server of remote MCP clients, against clients that try to get more than they were granted. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { adapterFor, REFRESH_LEEWAY_MS } from '../../broker/oauth-server/adapter.ts';
import { runFile } from '../../broker/process/run-file.ts';
import { putOAuthRecord, useOAuthRecord } from '../../broker/store/oauth-records.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { browserOf, CALLBACK } from '../world/mcp/person.ts';
import { callMcp, OAuthClient, pkce } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, givenWorld, shared, startWorld } from '../world/world.ts';

const READS = [{ platformId: 'demo', scopes: ['demo:read'] }];
const METADATA = [
  '/.well-known/oauth-authorization-server',
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/mcp',
];

describe.each(ONE_STORE)(`the authorization server on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  beforeAll(async () => {
    baseUrl = world.running.baseUrl;
  });
  const browser = () => browserOf(world, organisation.owner);
  const works = async (token: string) => (await callMcp(baseUrl, token)).status;
  const ended = async (clientId: string) =>
    (await organisation.ask('GET', '/owner/mcp-authorisations')).body.authorisations.find(
      (one: { client: { id: string } }) => one.client.id === clientId,
    )?.ended_because;

  describe('metadata', () => {
    test('a request without a token is pointed at the metadata, and a client discovers the server by the standards', async () => {
      const refused = await expectStatus(401, callMcp(baseUrl, undefined));
      const challenge = refused.headers.get('www-authenticate')!;
      expect(challenge).toBe(
        `Bearer resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/mcp", scope="mcp:read mcp:write"`,
      );
      const resource = await send(`${baseUrl}/.well-known/oauth-protected-resource/mcp`, {});
      expect(resource.headers.get('access-control-allow-origin')).toBe('*');
      expect(resource.body).toMatchObject({
        resource: `${baseUrl}/mcp`,
        authorization_servers: [baseUrl],
        bearer_methods_supported: ['header'],
      });
      const whole = await send(`${baseUrl}/.well-known/oauth-protected-resource`, {});
      expect(whole.body).toMatchObject({ resource: baseUrl, authorization_servers: [baseUrl] });
      const server = (await send(`${baseUrl}/.well-known/oauth-authorization-server`, {})).body;
      expect(server).toMatchObject({
        issuer: baseUrl,
        jwks_uri: `${baseUrl}/v1/oauth/jwks.json`,
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
      });
    });

    test('the broker’s metadata equals what the library supports', async () => {
      const { provider } = world.running.services.authorization;
      const ours = (await send(`${baseUrl}/.well-known/oauth-authorization-server`, {})).body;
      const { handle } = world.running.services.authorization;
      expect(await provider()).toBe(await provider());
      const theirs = await new Promise<Record<string, unknown>>((told) => {
        const server = createServer((request, response) => handle(request, response));
        server.listen(0, '127.0.0.1', async () => {
          const { port } = server.address() as AddressInfo;
          const found = await send(`http://127.0.0.1:${port}/.well-known/oauth-authorization-server`, {});
          server.closeAllConnections();
          server.close();
          told(found.body);
        });
      });
      const sorted = (value: unknown) => (Array.isArray(value) ? value.toSorted() : value);
      for (const [name, value] of Object.entries(ours))
        if (name in theirs && !['scopes_supported', 'response_modes_supported'].includes(name))
          expect([name, sorted(value)]).toEqual([name, sorted(theirs[name])]);
    });
  });

  describe('tokens', () => {
    test('are for /mcp, valid for 15 minutes, signed by a published key, and name the agent', async () => {
      const client = new OAuthClient(world);
      const tokens = await client.tokens(browser());
      expect(tokens).toMatchObject({ scope: 'mcp:read mcp:write', token_type: 'Bearer', expires_in: 900 });
      const keys = createRemoteJWKSet(new URL(`${baseUrl}/v1/oauth/jwks.json`));
      const { payload } = await jwtVerify(tokens.access_token, keys, { issuer: baseUrl, audience: `${baseUrl}/mcp` });
      expect(decodeProtectedHeader(tokens.access_token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' });
      expect(payload).toMatchObject({ client_id: client.id, scope: 'mcp:read mcp:write' });
      expect(payload.sub).toMatch(/^agt_/);
      expect(await works(tokens.access_token)).toBe(200);
      world.clock.skewMs = 16 * MINUTE_MS;
      const late = await callMcp(baseUrl, tokens.access_token);
      expect([late.status, late.body.error]).toEqual([401, 'token_expired']);
      expect(late.headers.get('www-authenticate')).toContain('error="invalid_token"');
    });

    test('codes, tokens and verifiers are not stored in a form that can be used', async () => {
      const client = new OAuthClient(world);
      const code = await client.code(browser());
      const tokens = (await client.redeem(code)).body;
      const rows = JSON.stringify(await world.db.selectFrom('oauth_records').selectAll().execute());
      for (const secret of [code, tokens.refresh_token, tokens.access_token, client.pair.verifier])
        expect(rows).not.toContain(secret);
      expect(rows).toContain(client.id);
    });

    test('a rotated key signs new tokens without a restart, and both keys’ tokens are valid', async () => {
      const before = await new OAuthClient(world).tokens(browser());
      const { kid, activatesAt } = await world.running.broker.keys.rotate('issuing', Date.now());
      world.clock.skewMs = activatesAt - Date.now() + 1_000;
      const after = await new OAuthClient(world).tokens(browser());
      expect(decodeProtectedHeader(after.access_token).kid).toBe(kid);
      expect(decodeProtectedHeader(before.access_token).kid).not.toBe(kid);
      expect([await works(before.access_token), await works(after.access_token)]).toEqual([200, 200]);
    });

    test('an owner’s session and an altered token are refused at /mcp, and a token for /mcp everywhere else', async () => {
      const { access_token: token } = await new OAuthClient(world).tokens(browser());
      const session = mintOwnerSession(world.running.broker, organisation.owner).token;
      const [header, payload, signature] = token.split('.') as [string, string, string];
      const edited = Buffer.from(JSON.stringify({ ...decodeJwt(token), scope: 'mcp:write', exp: 9_999_999_999 }));
      const others = {
        'an owner’s session': session,
        'one that was edited': `${header}.${edited.toString('base64url')}.${signature}`,
        'one without a signature': `${Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')}.${payload}.`,
        words: 'x',
      };
      for (const [what, one] of Object.entries(others)) {
        const answer = await callMcp(baseUrl, one);
        expect([what, answer.status, answer.body.error]).toEqual([what, 401, 'invalid_token']);
      }
      for (const path of ['/v1/agents/me', '/v1/agent/permissions', '/owner/me']) {
        const answer = await send(baseUrl + path, { headers: { authorization: `Bearer ${token}` } });
        expect([path, answer.status]).toEqual([path, 401]);
      }
      expect(await works(token)).toBe(200);
    });

    test('a token of the issuing key with another type, audience or claim is refused at /mcp', async () => {
      const { access_token: token } = await new OAuthClient(world).tokens(browser());
      const { signCompact } = await import('../../broker/crypto/jws.ts');
      const { keys, clock } = world.running.broker;
      const key = keys.signer('issuing', clock());
      const claims = decodeJwt(token) as never as Record<string, string>;
      const sign = (typ: string, changed: Record<string, unknown> = {}) =>
        signCompact(key, { typ }, { ...claims, ...changed } as never);
      expect(await works(sign('at+jwt'))).toBe(200);
      expect(await works(sign('svc-child+jwt'))).toBe(401);
      expect(await works(sign('at+jwt', { aud: baseUrl }))).toBe(401);
      expect(await works(sign('at+jwt', { aud: [`${baseUrl}/mcp`, 'https://else.example'] }))).toBe(401);
      expect(await works(sign('at+jwt', { iss: 'https://else.example' }))).toBe(401);
      expect(await works(sign('at+jwt', { sub: 'agt_00000000000000000000' }))).toBe(401);
      expect(await works(sign('at+jwt', { authorisation: crypto.randomUUID() }))).toBe(401);
      expect(await works(sign('at+jwt', { authorisation: undefined }))).toBe(401);
      expect(await works(sign('at+jwt', { exp: undefined }))).toBe(401);
    });
  });

  describe('refreshing', () => {
    test('returns new tokens each time', async () => {
      const client = new OAuthClient(world);
      const first = await client.tokens(browser());
      const second = (await client.refresh(first.refresh_token)).body;
      expect(second.refresh_token).not.toBe(first.refresh_token);
      const third = await client.refresh(second.refresh_token, { scope: 'mcp:read' });
      expect([third.status, third.body.scope]).toEqual([200, 'mcp:read']);
      expect(await works(third.body.access_token)).toBe(200);
      const more = await client.refresh(third.body.refresh_token, { scope: 'mcp:read else' });
      expect([more.status, more.body.error]).toEqual([400, 'invalid_scope']);
    });

    test('reusing a refresh token revokes everything that was issued from it, at the next call', async () => {
      const warned = vi.spyOn(world.running.broker.log, 'warn');
      const client = new OAuthClient(world);
      const other = new OAuthClient(world);
      const { refresh_token: others } = await other.tokens(browser());
      const first = await client.tokens(browser());
      const second = (await client.refresh(first.refresh_token)).body;
      expect(await works(second.access_token)).toBe(200);
      world.clock.skewMs = REFRESH_LEEWAY_MS + 1_000;
      const replayed = await client.refresh(first.refresh_token);
      expect([replayed.status, replayed.body.error]).toEqual([400, 'invalid_grant']);
      expect(await works(second.access_token)).toBe(401);
      expect((await client.refresh(second.refresh_token)).body.error).toBe('invalid_grant');
      expect(await ended(client.id)).toBe('reuse');
      expect(warned).toHaveBeenCalledWith(
        expect.objectContaining({ security: true }),
        expect.stringContaining('may have been stolen'),
      );
      expect((await other.refresh(others)).status).toBe(200);
    });

    test('a refresh token can be repeated for ten seconds after its first use; later that revokes all tokens issued from it', async () => {
      expect(REFRESH_LEEWAY_MS).toBe(10_000);
      const client = new OAuthClient(world);
      const first = await client.tokens(browser());
      const second = (await client.refresh(first.refresh_token)).body;
      world.clock.skewMs = REFRESH_LEEWAY_MS - 2_000;
      const third = await expectStatus(200, client.refresh(first.refresh_token));
      for (const { access_token } of [first, second, third.body]) expect(await works(access_token)).toBe(200);
      // Counted from the first use: a repetition does not extend the time.
      world.clock.skewMs = REFRESH_LEEWAY_MS + 1_000;
      expect((await client.refresh(first.refresh_token)).body.error).toBe('invalid_grant');
      for (const { access_token, refresh_token } of [second, third.body]) {
        expect(await works(access_token)).toBe(401);
        expect((await client.refresh(refresh_token)).body.error).toBe('invalid_grant');
      }
      expect(await ended(client.id)).toBe('reuse');
    });

    test('two concurrent refreshes of one client both succeed', async () => {
      const client = new OAuthClient(world);
      const { refresh_token } = await client.tokens(browser());
      const both = await Promise.all([client.refresh(refresh_token), client.refresh(refresh_token)]);
      expect(both.map(({ status }) => status)).toEqual([200, 200]);
      for (const { body } of both) expect(await works(body.access_token)).toBe(200);
    });

    test('is possible only for the client that the token was issued to', async () => {
      const client = new OAuthClient(world);
      const { refresh_token } = await client.tokens(browser());
      const other = new OAuthClient(world);
      await other.register();
      expect((await other.refresh(refresh_token)).body.error).toBe('invalid_grant');
      expect((await client.refresh(refresh_token)).status).toBe(200);
    });
  });

  describe('revocation (RFC 7009)', () => {
    const HINTS = ['access_token', 'refresh_token', undefined, 'pin'];
    const revoke = (client: OAuthClient, token: string, token_type_hint?: string, accept = '*/*') =>
      client.post('/oauth/revoke', { client_id: client.id, token, token_type_hint }, { accept });

    test.each(['access_token', 'refresh_token'] as const)(
      'of either token ends both at the next request, whatever the hint: %s',
      async (which) => {
        for (const hint of HINTS) {
          const client = new OAuthClient(world);
          const tokens = await client.tokens(browser());
          expect(await works(tokens.access_token)).toBe(200);
          const revoked = await revoke(client, tokens[which], hint);
          expect([hint, revoked.status, revoked.text]).toEqual([hint, 200, '']);
          expect([hint, await works(tokens.access_token)]).toEqual([hint, 401]);
          expect((await client.refresh(tokens.refresh_token)).body.error).toBe('invalid_grant');
          expect(await ended(client.id)).toBe('client');
          // Repeating it succeeds: the token is revoked.
          expect((await revoke(client, tokens[which], hint)).status).toBe(200);
        }
      },
    );

    test('of an access token is answered when the client prefers HTML, too', async () => {
      const client = new OAuthClient(world);
      const { access_token } = await client.tokens(browser());
      const revoked = await revoke(client, access_token, undefined, 'text/html');
      expect([revoked.status, revoked.text]).toEqual([200, '']);
      expect(await works(access_token)).toBe(401);
    });

    test('of an access token from before a refresh also ends the tokens since, and no other client of the agent', async () => {
      const first = new OAuthClient(world);
      const one = await first.tokens(browser());
      const { sub } = decodeJwt(one.access_token);
      const second = new OAuthClient(world);
      const same = { name: undefined, grants: undefined, agent: sub };
      const two = await second.tokens(browser(), {}, same);
      const newer = (await first.refresh(one.refresh_token, { scope: 'mcp:read' })).body;
      await revoke(first, one.access_token);
      for (const token of [one.access_token, newer.access_token]) expect(await works(token)).toBe(401);
      expect((await first.refresh(newer.refresh_token)).body.error).toBe('invalid_grant');
      expect(await works(two.access_token)).toBe(200);
      expect((await second.refresh(two.refresh_token)).status).toBe(200);
    });

    test('by another client changes nothing, and reveals nothing', async () => {
      const client = new OAuthClient(world);
      const tokens = await client.tokens(browser());
      const stranger = new OAuthClient(world);
      await stranger.register();
      for (const hint of HINTS)
        for (const token of [tokens.access_token, tokens.refresh_token]) {
          const answer = await revoke(stranger, token, hint);
          expect([answer.status, answer.text]).toEqual([200, '']);
        }
      const nobody = await client.post('/oauth/revoke', { client_id: 'nobody', token: tokens.access_token });
      expect([nobody.status, nobody.body.error]).toEqual([401, 'invalid_client']);
      const anonymous = await client.post('/oauth/revoke', { token: tokens.access_token });
      expect([anonymous.status, anonymous.body.error]).toEqual([400, 'invalid_request']);
      expect(await works(tokens.access_token)).toBe(200);
      expect((await client.refresh(tokens.refresh_token)).status).toBe(200);
    });

    test('of an unknown or expired token is answered with 200, and changes nothing', async () => {
      const client = new OAuthClient(world);
      const { access_token, refresh_token } = await client.tokens(browser());
      const [header, payload, signature] = access_token.split('.') as [string, string, string];
      const unsigned = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
      const unknown = [
        'x',
        'x.y.z',
        crypto.randomUUID(),
        `${unsigned}.${payload}.`,
        `${header}.${payload}.${[...signature].toReversed().join('')}`,
        mintOwnerSession(world.running.broker, organisation.owner).token,
      ];
      for (const token of unknown)
        for (const hint of HINTS) expect([token, (await revoke(client, token, hint)).status]).toEqual([token, 200]);
      expect(await works(access_token)).toBe(200);
      // An expired access token, as in an old log, revokes nothing any more.
      world.clock.skewMs = 16 * MINUTE_MS;
      expect((await revoke(client, access_token)).status).toBe(200);
      expect((await client.refresh(refresh_token)).status).toBe(200);
      const none = await client.post('/oauth/revoke', { client_id: client.id });
      expect([none.status, none.body.error]).toEqual([400, 'invalid_request']);
    });
  });

  describe('codes', () => {
    test('a code can be redeemed once; a second attempt revokes the tokens of the first', async () => {
      const client = new OAuthClient(world);
      const code = await client.code(browser());
      const { access_token } = (await client.redeem(code)).body;
      expect(await works(access_token)).toBe(200);
      expect((await client.redeem(code)).body.error).toBe('invalid_grant');
      expect(await works(access_token)).toBe(401);
    });

    test('a code is not accepted as a refresh token, nor a refresh token as a code', async () => {
      const client = new OAuthClient(world);
      const code = await client.code(browser());
      const refused = await client.refresh(code);
      expect([refused.status, refused.body.error]).toEqual([400, 'invalid_grant']);
      const { refresh_token } = (await expectStatus(200, client.redeem(code))).body;
      const other = await client.redeem(refresh_token);
      expect([other.status, other.body.error]).toEqual([400, 'invalid_grant']);
      expect((await client.refresh(refresh_token)).status).toBe(200);
    });

    test('of concurrent attempts at most one redeems a code', async () => {
      const client = new OAuthClient(world);
      const code = await client.code(browser());
      const answers = await Promise.all(Array.from({ length: 6 }, () => client.redeem(code)));
      expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    });

    test('a record can be used once, even by a request that read an earlier time', async () => {
      const id = crypto.randomUUID();
      const record = {
        kind: 'AuthorizationCode',
        id,
        authorisation_id: null,
        payload: '{}',
        created_at: 0,
        expires_at: null,
      };
      await putOAuthRecord(world.db, record);
      expect(await useOAuthRecord(world.db, record, { now: 1_000 })).toBe(true);
      for (const now of [1, 999, 1_000, 1_001]) expect(await useOAuthRecord(world.db, record, { now })).toBe(false);
      expect(await useOAuthRecord(world.db, record, { now: 1_500, leewayMs: 1_000 })).toBe(true);
      expect(await useOAuthRecord(world.db, record, { now: 2_500, leewayMs: 1_000 })).toBe(false);
    });

    test('what a concurrent request used first is refused: a code, an assertion, and a refresh token after ten seconds', async () => {
      const adapter = adapterFor(world.running.broker);
      const id = crypto.randomUUID();
      const [codes, tokens, assertions] = ['AuthorizationCode', 'RefreshToken', 'ReplayDetection'].map(adapter);
      await codes!.upsert(id, {}, 60);
      await codes!.consume(id);
      await expect(codes!.consume(id)).rejects.toThrow('invalid_grant');
      await tokens!.upsert(id, {}, 60);
      await tokens!.consume(id);
      await tokens!.consume(id);
      world.clock.skewMs = REFRESH_LEEWAY_MS + 1_000;
      await expect(tokens!.consume(id)).rejects.toThrow('invalid_grant');
      await assertions!.upsert(id, {}, 60);
      await expect(assertions!.upsert(id, {}, 60)).rejects.toThrow('invalid_client');
    });

    test('a code expires after a minute', async () => {
      const client = new OAuthClient(world);
      const code = await client.code(browser());
      world.clock.skewMs = 61_000;
      expect((await client.redeem(code)).body.error).toBe('invalid_grant');
    });

    test('a request for two resources, one of them foreign, is refused (RFC 8707)', async () => {
      const client = new OAuthClient(world);
      const form = (code: string, ...resources: string[]) =>
        new URLSearchParams([
          ['grant_type', 'authorization_code'],
          ['client_id', client.id],
          ['redirect_uri', CALLBACK],
          ['code_verifier', client.pair.verifier],
          ['code', code],
          ...resources.map((one) => ['resource', one]),
        ] as [string, string][]).toString();
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const ask = (body: string) => send(`${baseUrl}/oauth/token`, { method: 'POST', headers, body });
      for (const resources of [
        [`${baseUrl}/mcp`, 'https://else.example/mcp'],
        ['https://else.example/mcp', `${baseUrl}/mcp`],
      ]) {
        const answer = await ask(form(await client.code(browser()), ...resources));
        expect([answer.status, answer.body.error], answer.text).toEqual([400, 'invalid_target']);
      }
    });

    test('a code cannot be redeemed with another verifier, without one, by another client, or with another redirect URI', async () => {
      const wrong: [string, Record<string, string | undefined>][] = [
        ['another verifier', { code_verifier: pkce().verifier }],
        ['no verifier', { code_verifier: undefined }],
        ['another address', { redirect_uri: 'http://127.0.0.1:9/other' }],
        ['another resource', { resource: 'https://else.example/mcp' }],
      ];
      for (const [what, changed] of wrong) {
        const client = new OAuthClient(world);
        const answer = await client.redeem(await client.code(browser()), changed);
        expect([what, answer.status], answer.text).toEqual([what, 400]);
      }
      const client = new OAuthClient(world);
      const other = new OAuthClient(world);
      await other.register();
      const code = await client.code(browser());
      expect((await client.redeem(code, { client_id: other.id })).body.error).toBe('invalid_grant');
      expect((await client.redeem(code)).status).toBe(200);
    });
  });

  describe('authorization requests', () => {
    const refusal = async (changed: Record<string, string | undefined>) => {
      const client = new OAuthClient(world);
      await client.register();
      const visitor = browser();
      return { visit: await visitor.get(client.address(changed)), seen: visitor.seen };
    };

    test.each([
      ['another address', { redirect_uri: 'https://evil.example/callback' }],
      ['an address that only begins the same', { redirect_uri: `${CALLBACK}/../evil` }],
      ['one with more in it', { redirect_uri: `${CALLBACK}?x=1` }],
      ['another scheme', { redirect_uri: CALLBACK.replace('http:', 'https:') }],
      ['another path on another port', { redirect_uri: 'http://127.0.0.1:77/else' }],
      ['no address that it knows', { redirect_uri: 'javascript:alert(1)' }],
      ['a client that is not known', { client_id: 'nobody' }],
    ])('with %s are not redirected: a page of the broker shows the error', async (_what, changed) => {
      const { visit, seen } = await refusal(changed);
      expect(visit.status, visit.text).toBe(400);
      expect(visit.text).toContain('Nothing was granted');
      expect(visit.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(seen).toHaveLength(1);
    });

    test.each([
      ['without PKCE', { code_challenge: undefined, code_challenge_method: undefined }, 'invalid_request'],
      ['with plain PKCE', { code_challenge_method: 'plain' }, 'invalid_request'],
      ['for another resource', { resource: 'https://else.example/mcp' }, 'invalid_target'],
      ['for another port of this machine', { resource: 'http://localhost/' }, 'invalid_target'],
      ['for a token at once', { response_type: 'token' }, 'unsupported_response_type'],
      ['without a question to anybody', { prompt: 'none' }, 'login_required'],
    ])('%s are refused with a redirect to the client, with iss (RFC 9207)', async (_what, changed, error) => {
      const { visit } = await refusal(changed);
      const back = new URL(visit.url);
      expect(back.href.split(/[?#]/)[0]).toBe(CALLBACK);
      // An error for another response_type may be in the fragment: RFC 6749 section 4.2.2.1.
      const told = back.hash === '' ? back.searchParams : new URLSearchParams(back.hash.slice(1));
      expect(Object.fromEntries(told)).toMatchObject({ error, iss: baseUrl, state: 'state-1' });
    });

    test('may use any port on loopback (RFC 8252 section 7.3)', async () => {
      const client = new OAuthClient(world);
      await client.register();
      const redirect_uri = 'http://127.0.0.1:54321/callback';
      const code = await client.code(browser(), { redirect_uri });
      expect((await client.redeem(code, { redirect_uri })).status).toBe(200);
    });

    test('have unknown scopes removed, and without a known scope all scopes', async () => {
      for (const scope of [undefined, 'claudeai', 'openid profile offline_access']) {
        const tokens = await new OAuthClient(world).tokens(browser(), { scope });
        expect(tokens.scope).toBe('mcp:read mcp:write');
      }
      expect((await new OAuthClient(world).tokens(browser(), { scope: 'mcp:read else' })).scope).toBe('mcp:read');
    });
  });

  describe('/mcp', () => {
    test('a token for reading cannot write, and the challenge names the needed scopes', async () => {
      const { access_token: token } = await new OAuthClient(world).tokens(
        browser(),
        { scope: 'mcp:read' },
        { grants: READS },
      );
      const call = (name: string, args: Record<string, unknown>) =>
        callMcp(baseUrl, token, { method: 'tools/call', params: { name, arguments: args } });
      const items = { platform: 'demo', scope: 'demo:read', endpoint: '/items' };
      expect((await call('read_platform', items)).status).toBe(200);
      for (const name of ['write_platform', 'delete_platform']) {
        const refused = await call(name, items);
        expect([refused.status, refused.body.error]).toEqual([403, 'insufficient_scope']);
        const challenge = refused.headers.get('www-authenticate');
        expect(challenge).toContain('error="insufficient_scope"');
        expect(challenge).toContain('scope="mcp:read mcp:write"');
        expect(challenge).toContain('resource_metadata="');
      }
      const batch = await send(
        `${baseUrl}/mcp`,
        jsonPost(
          [
            { jsonrpc: '2.0', id: 1, method: 'tools/list' },
            { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'write_platform', arguments: items } },
          ],
          { authorization: `Bearer ${token}` },
        ),
      );
      expect(batch.status).toBe(403);
    });

    test('requests from pages of other sites are refused, and GET and DELETE are not supported', async () => {
      const { access_token: token } = await new OAuthClient(world).tokens(browser());
      for (const origin of ['https://evil.example', 'null', 'http://localhost:1'])
        expect((await callMcp(baseUrl, token, undefined, { origin })).status).toBe(403);
      expect((await callMcp(baseUrl, token, undefined, { origin: baseUrl })).status).toBe(200);
      for (const method of ['GET', 'DELETE']) {
        const answer = await send(`${baseUrl}/mcp`, { method, headers: { authorization: `Bearer ${token}` } });
        expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
      }
    });

    test('a message that is too large, or malformed, is refused before anything is done', async () => {
      const { access_token: token } = await new OAuthClient(world).tokens(browser());
      const post = (body: string) =>
        send(`${baseUrl}/mcp`, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            authorization: `Bearer ${token}`,
          },
          body,
        });
      expect((await post(JSON.stringify({ x: 'x'.repeat(3 * 1024 * 1024) }))).status).toBe(413);
      expect((await post('{')).status).toBe(400);
      expect((await post('{}')).status).toBe(400);
    });
  });
});

test('with a plain http address beyond loopback the authorization server is off, its metadata is absent, and /mcp says why', async () => {
  const world = await startWorld('sqlite', { BASE_URL: 'http://broker.example' });
  const { url } = JSON.parse(readFileSync(runFile(world.running.broker.config.dataFolder), 'utf8'));
  const client = new OAuthClient(world, url);
  const answers = [
    await client.register(),
    await client.redeem('x'),
    await client.post('/oauth/revoke', { token: 'x' }),
    await send(client.address(), {}),
    await callMcp(url, undefined),
    await callMcp(url, 'x'),
  ];
  for (const { status, body, headers } of answers) {
    expect([status, body.error]).toEqual([403, 'forbidden']);
    expect(body.detail).toContain('BASE_URL');
    expect(headers.get('www-authenticate')).toBeNull();
  }
  for (const path of METADATA) {
    const { status, body } = await send(url + path, {});
    expect([path, status, body.error]).toEqual([path, 404, 'not_found']);
    expect(body.detail).toContain('plain http');
  }
  const { documents } = (await send(`${url}/agent-manifest.json`, {})).body;
  expect(Object.keys(documents).filter((name) => name.startsWith('oauth_'))).toEqual([]);
  expect(documents.issuing_keys).toBe('http://broker.example/v1/oauth/jwks.json');
});

test.each(['http://localhost', 'http://127.0.0.1', 'http://[::1]'])('%s is accepted without https', async (base) => {
  const world = await startWorld('sqlite', { BASE_URL: `${base}:8787` });
  const { url } = JSON.parse(readFileSync(runFile(world.running.broker.config.dataFolder), 'utf8'));
  for (const path of METADATA) expect((await send(url + path, {})).status).toBe(200);
  expect((await new OAuthClient(world, url).register()).status).toBe(201);
});

test('the number of open requests of an agent is limited', async () => {
  const world = await startWorld();
  const organisation = await world.organisation();
  await organisation.platform();
  await organisation.policy(DEMO_RULES, 'default');
  const grants = [{ platformId: 'demo', scopes: ['demo:write'] }];
  const tokens = await new OAuthClient(world).tokens(browserOf(world, organisation.owner), {}, { grants });
  const { baseUrl } = world.running;
  const args = (n: number) => ({ platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { n } });
  const waiting = Array.from({ length: 32 }, (_, n) =>
    callMcp(baseUrl, tokens.access_token, {
      method: 'tools/call',
      params: { name: 'write_platform', arguments: args(n) },
    }),
  );
  const pending = async () => (await organisation.ask('GET', '/owner/approvals?limit=100')).body.approvals;
  const list = () => callMcp(baseUrl, tokens.access_token);
  while ((await pending()).length < 32) await new Promise((next) => setTimeout(next, 25));
  const answer = await list();
  expect([answer.status, answer.body.error, answer.headers.get('retry-after')]).toEqual([
    429,
    'too_many_streams',
    '30',
  ]);
  for (const { approval_id } of await pending()) await organisation.deny(approval_id);
  for (const { status } of await Promise.all(waiting)) expect(status).toBe(200);
  expect((await list()).status).toBe(200);
});
