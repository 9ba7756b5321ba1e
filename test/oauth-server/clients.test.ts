/** Clients: registered ones (RFC 7591), and those that a metadata document describes. */
import { createServer } from 'node:https';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeAuthorizationServer } from '../../broker/oauth-server/server.ts';
import { startHousekeeping } from '../../broker/process/housekeeping.ts';
import { capOAuthRecords, purgeIdleClients, purgeOAuthRecords } from '../../broker/store/oauth-records.ts';
import { certificateFor } from '../egress/certificate.ts';
import { expectStatus, send } from '../world/agent.ts';
import { listenOnLoopback, serveHandler } from '../world/listen.ts';
import { browserOf, CALLBACK } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { outboundTo } from '../world/resolve-locally.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { HOUR_MS, MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, givenWorld, shared, startWorld } from '../world/world.ts';

const HOST = 'app.example';

describe.each(ONE_STORE)(`clients on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation({ rules: DEMO_RULES }));
  beforeAll(async () => {
    baseUrl = world.running.baseUrl;
  });
  const now = () => world.running.broker.clock();
  const known = async (id: string) =>
    (
      await world.db
        .selectFrom('oauth_records')
        .select('id')
        .where('kind', '=', 'Client')
        .where('id', '=', id)
        .execute()
    ).length === 1;

  describe('that register', () => {
    test('are registered as public clients, even when they ask for a secret', async () => {
      for (const method of ['client_secret_basic', 'client_secret_post', undefined]) {
        const { status, body } = await new OAuthClient(world).register({ token_endpoint_auth_method: method });
        expect(status).toBe(201);
        expect(body).toMatchObject({ client_name: 'Raw', token_endpoint_auth_method: 'none' });
        expect(body).not.toHaveProperty('client_secret');
        expect(body).not.toHaveProperty('registration_access_token');
      }
    });

    test('may send additional metadata, as claude.ai, Cursor and VS Code do', async () => {
      const theirs: Record<string, unknown>[] = [
        {
          client_name: 'Claude',
          redirect_uris: ['https://claude.ai/api/mcp/auth_callback'],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: 'none',
          scope: 'claudeai',
        },
        {
          client_name: 'Cursor',
          redirect_uris: ['cursor://anysphere.cursor-mcp/oauth/callback'],
          grant_types: ['authorization_code', 'refresh_token'],
        },
        {
          client_name: 'Visual Studio Code',
          redirect_uris: ['http://127.0.0.1/', 'https://vscode.dev/redirect'],
          application_type: 'native',
          software_id: 'vscode',
          contacts: ['somebody@example.com'],
        },
        {
          client_name: 'Visual Studio Code of 2025',
          redirect_uris: ['http://127.0.0.1/', 'http://localhost:33418/'],
          grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
          response_types: ['code', 'token'],
        },
        {
          client_name: 'Claude Code (broker)',
          redirect_uris: ['http://localhost:54212/callback'],
          application_type: 'web',
        },
        {
          client_name: 'One that leaves nothing out',
          redirect_uris: ['http://127.0.0.1:33418/callback'],
          ...Object.fromEntries(
            ['client_uri', 'logo_uri', 'tos_uri', 'policy_uri', 'jwks_uri'].map((name) => [name, '']),
          ),
          ...Object.fromEntries(
            ['jwks', 'contacts', 'grant_types', 'response_types', 'software_id'].map((name) => [name, null]),
          ),
          token_endpoint_auth_method: null,
        },
        {
          client_name: 'One for OpenID Connect',
          redirect_uris: ['http://127.0.0.1:33418/callback'],
          default_max_age: 3600,
          require_auth_time: true,
        },
      ];
      for (const metadata of theirs) {
        const client = new OAuthClient(world);
        const { status, body, text } = await client.register(metadata);
        expect([metadata.client_name, status], text).toEqual([metadata.client_name, 201]);
        expect([body.grant_types, body.response_types]).toEqual([['authorization_code', 'refresh_token'], ['code']]);
        const [redirect_uri] = metadata.redirect_uris as [string];
        const code = await client.code(browserOf(world, organisation.owner), { redirect_uri });
        expect((await client.redeem(code, { redirect_uri })).status, `${body.client_name}`).toBe(200);
      }
    });

    test('may ask for any prompt, because the consent page is always shown; none stays an error', async () => {
      for (const prompt of ['consent', 'login', 'select_account', 'login select_account', 'create', '']) {
        const client = new OAuthClient(world);
        const code = await client.code(browserOf(world, organisation.owner), { prompt });
        expect((await client.redeem(code)).status, prompt).toBe(200);
      }
      const client = new OAuthClient(world);
      await client.register();
      for (const prompt of ['none', 'none login']) {
        const { headers } = await send(client.address({ prompt }), {});
        expect(headers.get('location'), prompt).toMatch(/[?&]error=/);
      }
    });

    test('may have a name of any length and in any script', async () => {
      for (const [client_name, shown] of [
        [`${'a'.repeat(99)}😀`, `${'a'.repeat(99)}\uFFFD`],
        ['half of one: \uD83D', 'half of one: \uFFFD'],
        [`${'a'.repeat(98)}😀`, `${'a'.repeat(98)}😀`],
      ]) {
        const client = new OAuthClient(world);
        expect((await client.register({ client_name })).body.client_name).toBe(shown);
        const tokens = await client.tokens(browserOf(world, organisation.owner));
        expect(tokens.access_token).toBeDefined();
      }
    });

    test.each([
      ['no address', { redirect_uris: [] }],
      ['http elsewhere', { redirect_uris: ['http://app.example/cb'] }],
      ['http elsewhere, as a web application', { redirect_uris: ['http://app.example/cb'], application_type: 'web' }],
      ['http elsewhere beside loopback', { redirect_uris: [CALLBACK, 'http://app.example/cb'] }],
      ['a script', { redirect_uris: ['javascript:alert(1)'] }],
      ['data', { redirect_uris: ['data:text/html,x'] }],
      ['a fragment', { redirect_uris: ['https://app.example/cb#x'] }],
      ['what is no address', { redirect_uris: ['callback'] }],
      ['too many addresses', { redirect_uris: Array.from({ length: 21 }, (_, n) => `https://app.example/${n}`) }],
      ['no list', { redirect_uris: 'https://app.example/cb' }],
      ['a user name in an address', { redirect_uris: ['https://user@app.example/cb'] }],
      ['a password in an address', { redirect_uris: ['https://user:pw@app.example/cb'] }],
      ['an address for files', { redirect_uris: ['ftp://app.example/cb'] }],
      ['an address of mail', { redirect_uris: ['mailto:a@app.example'] }],
      ['an address that shows a source', { redirect_uris: ['view-source:https://app.example/cb'] }],
      ['an address of a socket', { redirect_uris: ['wss://app.example/cb'] }],
      ['an address of 1,100 characters', { redirect_uris: [`https://app.example/${'x'.repeat(1_080)}`] }],
      [
        'addresses of 5,000 characters',
        { redirect_uris: Array.from({ length: 10 }, (_, n) => `https://app.example/${n}${'x'.repeat(480)}`) },
      ],
      [
        'a key too short to prove anything with',
        {
          token_endpoint_auth_method: 'private_key_jwt',
          jwks: { keys: [{ kty: 'RSA', e: 'AQAB', n: Buffer.alloc(128, 255).toString('base64url') }] },
        },
      ],
      ['tokens at once', { response_types: ['token'], grant_types: ['implicit'] }],
      ['tokens without anybody', { grant_types: ['client_credentials'], response_types: [] }],
      [
        'keys at an address that is not https',
        { jwks_uri: 'http://app.example/jwks', token_endpoint_auth_method: 'private_key_jwt' },
      ],
    ])('with %s are refused', async (_what, metadata) => {
      const { body } = await expectStatus(400, new OAuthClient(world).register(metadata));
      expect(body.error).toMatch(/^invalid_(client_metadata|redirect_uri)$/);
    });

    test.each([
      ['http elsewhere', ['http://app.example/cb'], /^redirect_uris: https, .* or http on loopback$/],
      ['a user name in an address', ['https://user@app.example/cb'], /^redirect_uris: https, .*; no userinfo$/],
      ['a script', ['javascript:alert(1)'], /^redirect_uris: https, .*; no userinfo$/],
      ['no list', 'https://app.example/cb', /^redirect_uris: a list of at most 20$/],
    ])('with %s get an error that says what is allowed', async (_what, redirect_uris, told) => {
      const { status, body } = await new OAuthClient(world).register({ redirect_uris });
      expect([status, body.error]).toEqual([400, 'invalid_redirect_uri']);
      expect(body.error_description).toMatch(told);
    });

    test('with a sector_identifier_uri are refused before it would be fetched', async () => {
      const send = vi.spyOn(world.running.broker.publicOutbound, 'send');
      onTestFinished(() => send.mockRestore());
      const metadata = { sector_identifier_uri: 'https://app.example/sector' };
      const { status, body } = await new OAuthClient(world).register(metadata);
      expect([status, body.error, send.mock.calls.length]).toEqual([400, 'invalid_client_metadata', 0]);
    });

    test('are deleted after a day, or if an owner allowed them, a day after their last authorisation ended', async () => {
      const unused = new OAuthClient(world);
      await unused.register();
      const used = new OAuthClient(world);
      const tokens = await used.tokens(browserOf(world, organisation.owner));
      const chores = async () => {
        await purgeOAuthRecords(world.db, now());
        await purgeIdleClients(world.db, now());
      };
      await chores();
      expect([await known(unused.id), await known(used.id)]).toEqual([true, true]);
      world.clock.skewMs = 25 * HOUR_MS;
      await expectStatus(400, browserOf(world, organisation.owner).get(unused.address()));
      await chores();
      expect([await known(unused.id), await known(used.id)]).toEqual([false, true]);
      world.clock.skewMs = 0;
      await used.post('/oauth/revoke', { client_id: used.id, token: tokens.refresh_token });
      await chores();
      // The client may connect again right after an owner, or the client itself, ended the authorisation.
      expect(await known(used.id)).toBe(true);
      world.clock.skewMs = 25 * HOUR_MS;
      await chores();
      expect(await known(used.id)).toBe(false);
      const gone = await expectStatus(400, browserOf(world, organisation.owner).get(used.address()));
      expect(gone.text).toContain('Remove the connection in the application and add it again');
      world.clock.skewMs = 0;
    });

    test('are limited in number: the oldest without an authorisation are deleted first', async () => {
      const used = new OAuthClient(world);
      await used.tokens(browserOf(world, organisation.owner));
      const clients: OAuthClient[] = [];
      for (let n = 0; n < 4; n++) {
        world.clock.skewMs = n * 1_000;
        const client = new OAuthClient(world);
        await client.register();
        clients.push(client);
      }
      await capOAuthRecords(world.db, 'Client', 2);
      expect(await Promise.all(clients.map(({ id }) => known(id)))).toEqual([false, false, true, true]);
      expect(await known(used.id)).toBe(true);
    });

    test('are deleted by housekeeping', async () => {
      const unused = new OAuthClient(world);
      await unused.register();
      const used = new OAuthClient(world);
      const tokens = await used.tokens(browserOf(world, organisation.owner));
      await used.post('/oauth/revoke', { client_id: used.id, token: tokens.refresh_token });
      const keeping = startHousekeeping(world.running.broker, {}, 5);
      onTestFinished(() => keeping.stop());
      await keeping.stop();
      expect([await known(used.id), await known(unused.id)]).toEqual([true, true]);
      world.clock.skewMs = 25 * HOUR_MS;
      const later = startHousekeeping(world.running.broker, {}, 5);
      onTestFinished(() => later.stop());
      await expect
        .poll(async () => [await known(used.id), await known(unused.id)], { timeout: 10_000 })
        .toEqual([false, false]);
      world.clock.skewMs = 0;
    });
  });

  describe('with a metadata document', () => {
    let answer: (path: string) => { status?: number; body: string | Buffer; headers?: Record<string, string> };
    let asked: string[] = [];
    /** An authorization server for which `app.example` leads to a server of this test. */
    let at: string;
    let port: number;
    beforeAll(async () => {
      const { key, cert } = certificateFor(HOST);
      const documents = createServer({ key, cert }, (request, response) => {
        asked.push(request.url!);
        const { status = 200, body, headers = { 'content-type': 'application/json' } } = answer(request.url!);
        response.writeHead(status, headers).end(body);
      });
      port = await listenOnLoopback(documents);
      const publicOutbound = outboundTo(HOST, port, cert);
      afterFile(publicOutbound.close);
      at = await serveHandler(makeAuthorizationServer({ ...world.running.broker, publicOutbound }).handle);
    });
    beforeEach(() => {
      asked = [];
    });
    let number = 0;
    /** A new address for each document, because documents are cached. */
    const idOf = () => `https://${HOST}:${port}/client-${++number}`;
    const documentOf = (id: string, changed: Record<string, unknown> = {}) => ({
      client_id: id,
      client_name: 'Documented',
      redirect_uris: ['https://app.example/cb'],
      ...changed,
    });
    const authorize = async (id: string, redirect_uri = 'https://app.example/cb') => {
      const client = new OAuthClient(world, at);
      client.id = id;
      const url = client.address({ redirect_uri, resource: `${baseUrl}/mcp` });
      const visit = await send(url, {});
      return { status: visit.status, location: visit.headers.get('location') ?? '', text: visit.text };
    };

    test('get to the consent page, and their document is cached', async () => {
      const id = idOf();
      answer = () => ({ body: JSON.stringify(documentOf(id)) });
      for (let turn = 0; turn < 2; turn++) {
        const { status, location, text } = await authorize(id);
        expect([status, location.startsWith('/oauth/consent/')], text).toEqual([303, true]);
      }
      expect(asked).toEqual([new URL(id).pathname]);
    });

    test.each<[string, (now: number) => Record<string, string>, number]>([
      ['nothing', () => ({}), 1],
      ['ten minutes', () => ({ 'cache-control': 'public, max-age=600' }), 10],
      [
        'ten minutes, in the words of HTTP/1.0',
        (now) => ({ expires: new Date(now + 10 * MINUTE_MS).toUTCString() }),
        10,
      ],
      ['a year', () => ({ 'cache-control': 'max-age=31536000' }), 15],
      ['never', () => ({ 'cache-control': 'max-age=0' }), 1],
    ])(
      'have their document cached for as long as it says, but between 1 and 15 minutes: %s',
      async (_what, said, minutes) => {
        const start = Date.now();
        vi.useFakeTimers({ toFake: ['Date'], now: start });
        onTestFinished(() => void vi.useRealTimers());
        const id = idOf();
        answer = () => ({
          body: JSON.stringify(documentOf(id)),
          headers: { 'content-type': 'application/json', ...said(start) },
        });
        const timesAskedAt = async (at: number) => {
          vi.setSystemTime(start + at);
          expect((await authorize(id)).status).toBe(303);
          return asked.length;
        };
        expect(await timesAskedAt(0)).toBe(1);
        expect(await timesAskedAt(minutes * MINUTE_MS - 10_000)).toBe(1);
        expect(await timesAskedAt(minutes * MINUTE_MS + 10_000)).toBe(2);
      },
    );

    test('may use any port on loopback, as Claude Code does', async () => {
      const id = idOf();
      const redirect_uris = ['http://localhost/callback', 'http://127.0.0.1/callback'];
      answer = () => ({ body: JSON.stringify(documentOf(id, { redirect_uris, token_endpoint_auth_method: 'none' })) });
      expect((await authorize(id, 'http://localhost:50123/callback')).status).toBe(303);
      expect((await authorize(id, 'http://localhost:50123/else')).status).toBe(400);
      expect((await authorize(id, 'http://evil.example/callback')).status).toBe(400);
    });

    test.each([
      ['is another client', (id: string) => ({ body: JSON.stringify(documentOf(`${id}/else`)) })],
      ['names none', (id: string) => ({ body: JSON.stringify({ ...documentOf(id), client_id: undefined }) })],
      ['is no JSON', () => ({ body: '<html>' })],
      ['is a list', () => ({ body: '[]' })],
      ['is not there', () => ({ status: 404, body: '{}' })],
      ['is elsewhere', () => ({ status: 302, body: '', headers: { location: 'https://app.example/else' } })],
      ['has a secret', (id: string) => ({ body: JSON.stringify(documentOf(id, { client_secret: 'x' })) })],
      [
        'sends codes elsewhere',
        (id: string) => ({ body: JSON.stringify(documentOf(id, { redirect_uris: ['https://else.example/cb'] })) }),
      ],
      [
        'sends them in the clear',
        (id: string) => ({ body: JSON.stringify(documentOf(id, { redirect_uris: ['http://else.example/cb'] })) }),
      ],
      [
        'is larger than it may be',
        (id: string) => ({
          body: JSON.stringify(documentOf(id, { policy_uri: `https://x.example/${'x'.repeat(20_000)}` })),
        }),
      ],
      ['is 10 MB large', () => ({ body: Buffer.alloc(10 * 1024 * 1024, 0x20) })],
    ])('are refused when the document %s', async (_what, given) => {
      const id = idOf();
      answer = () => given(id);
      const { text } = await expectStatus(400, authorize(id));
      expect(text).toContain('Nothing was granted');
      // One request for the document, and one more to check whether the error may be redirected to that client.
      expect(asked.length).toBeLessThanOrEqual(2);
      expect(new Set(asked)).toEqual(new Set([new URL(id).pathname]));
    });

    test.each([
      ['this machine', 'https://127.0.0.1/client'],
      ['this machine by name', 'https://localhost/client'],
      ['a private network', 'https://10.0.0.1/client'],
      ['a private network in other words', 'https://[::ffff:10.0.0.1]/client'],
      ['the cloud’s metadata', 'https://169.254.169.254/latest/meta-data'],
      ['another port', 'https://app.example:22/client'],
      ['http', 'http://app.example/client'],
      ['user and password', 'https://a:b@app.example/client'],
      ['a fragment', 'https://app.example/client#x'],
      ['dots', 'https://app.example/a/../client'],
    ])('have no document fetched from %s', async (_what, id) => {
      answer = () => ({ body: JSON.stringify(documentOf(id)) });
      expect((await authorize(id)).status).toBe(400);
      expect(asked).toEqual([]);
    });

    test('have no document fetched from a private address, even where platforms may have one', async () => {
      const client = new OAuthClient(world);
      client.id = `https://${world.upstream.address}/client`;
      const seen = world.upstream.seen.length;
      await expectStatus(400, send(client.address(), {}));
      expect(world.upstream.seen.length).toBe(seen);
    });
  });
});

test('registrations are limited per address and minute', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
  const statuses: number[] = [];
  for (let n = 0; n < 22; n++) statuses.push((await new OAuthClient(world).register()).status);
  expect(statuses.slice(0, 20)).toEqual(Array(20).fill(201));
  expect(statuses.slice(20)).toEqual([429, 429]);
});
