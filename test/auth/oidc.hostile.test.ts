/** Identity providers that are down, slow, faulty or hostile: nobody is signed in, and the broker stays available. */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { SignJWT, UnsecuredJWT } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { runFile } from '../../broker/process/run-file.ts';
import { expectStatus, send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { Browser, type Visit } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { startIdentityProvider } from '../world/servers/identity-provider.ts';
import { CLIENT_ID, type LyingProvider, makeSigner, startLyingProvider } from '../world/servers/lying-provider.ts';
import { newFolder } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { shared, startWorld, type World } from '../world/world.ts';

/** Starts a world whose provider has not been contacted yet. */
async function worldOf(provider: { settings: Record<string, string> }) {
  const world = await startWorld('sqlite', provider.settings);
  const organisation = await world.organisation();
  await organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role: 'viewer' });
  return { world, organisation, start: `${world.running.baseUrl}/console/oidc/start` };
}

describe('a provider with invalid responses', () => {
  let world: World;
  let start: string;
  const provider = shared(() => startLyingProvider());
  beforeAll(async () => {
    ({ world, start } = await worldOf(provider));
  });
  beforeEach(() => {
    world.clock.skewMs = 0;
    provider.beHonest();
    provider.claims = { email: 'ann@acme.example', email_verified: true };
  });

  const refused = async (status: number): Promise<Visit> => {
    const browser = new Browser();
    const visit = await browser.get(start);
    expect([visit.status, visit.headers.get('content-type')], visit.text).toEqual([status, 'text/html; charset=utf-8']);
    expect(browser.cookies.filter(({ name }) => name.startsWith('svc_owner'))).toEqual([]);
    return visit;
  };
  const signsIn = async () => {
    const browser = new Browser();
    await expectStatus(200, browser.get(start));
    expect(browser.cookies.map(({ name }) => name)).toEqual([expect.stringMatching(/^svc_owner_\d+$/)]);
  };

  test('control case: with valid responses the sign-in succeeds; the address may come from userinfo', async () => {
    await signsIn();
  });

  const ALGORITHMS = ['ES256', 'ES384', 'PS256', 'PS512', 'RS512', 'EdDSA'];
  test.each(ALGORITHMS)('control case: a key for %s is supported', async (alg) => {
    world.clock.skewMs = 31_000 * (ALGORITHMS.indexOf(alg) + 1);
    const signer = await makeSigner(alg);
    provider.keys.push(signer.publicJwk);
    provider.token = (honest) => provider.sign(honest, {}, signer);
    await signsIn();
  });

  test('control case: keys without kid are supported, when the second one signed the token', async () => {
    world.clock.skewMs = 10 * MINUTE_MS;
    const before = [...provider.keys];
    provider.clock = () => Date.now() + world.clock.skewMs;
    const [other, signer] = [await makeSigner(), await makeSigner()];
    provider.keys = [other, signer].map(({ publicJwk: { kid: _, ...key } }) => key);
    provider.token = (honest) => provider.sign({ ...honest, ...now() }, { kid: undefined }, signer);
    await signsIn();
    provider.token = async (honest) => provider.sign({ ...honest, ...now() }, { kid: undefined }, await makeSigner());
    await refused(502);
    provider.keys = before;
  });
  const now = () => {
    const iat = Math.floor(provider.clock() / 1000);
    return { iat, exp: iat + 300 };
  };

  test('an ID token signed with a shared secret: the page names the algorithm, and the supported ones', async () => {
    provider.token = (honest) =>
      new SignJWT(honest).setProtectedHeader({ alg: 'HS512' }).sign(new TextEncoder().encode('x'.repeat(64)));
    expect((await refused(502)).text).toMatch(/signed with HS512: have the identity provider sign with one of RS256, /);
  });

  test.each<[string, Record<string, unknown>]>([
    ['another nonce', { nonce: 'x' }],
    ['no nonce', { nonce: undefined }],
    ['another audience', { aud: 'another-app' }],
    ['another audience beside ours, and no word to whom it was given', { aud: [CLIENT_ID, 'another-app'] }],
    ['another authorized party', { azp: 'another-app' }],
    ['another issuer', { iss: 'https://evil.test' }],
    ['an end that has passed', { exp: Math.floor(Date.now() / 1000) - 60 }],
    ['no end', { exp: undefined }],
    [
      'a time a day ahead',
      { iat: Math.floor(Date.now() / 1000) + 86_400, exp: Math.floor(Date.now() / 1000) + 90_000 },
    ],
    ['nobody in it', { sub: undefined }],
    ['an empty subject', { sub: '' }],
    ['a subject that is no text', { sub: { $ne: 1 } }],
    ['a subject of 300 characters', { sub: 'x'.repeat(300) }],
    ['a subject with a line feed', { sub: 'ann\n' }],
    ['news of a sign-out', { events: { 'http://schemas.openid.net/event/backchannel-logout': {} } }],
  ])('an ID token with %s is refused', async (_name, claims) => {
    Object.assign(provider.claims, claims);
    await refused(502);
  });

  test.each<[string, (provider: LyingProvider, honest: Record<string, unknown>) => Promise<string> | string]>([
    ['without a signature', (_, honest) => new UnsecuredJWT(honest).encode()],
    [
      'signed by nobody, in the name of a key that is published',
      async (one, honest) => one.sign(honest, {}, { ...(await makeSigner()), kid: one.signer.kid }),
    ],
    ['by a key that is not published', async (one, honest) => one.sign(honest, {}, await makeSigner())],
    [
      'by a key that it brings along',
      async (one, honest) => {
        const own = await makeSigner();
        return await one.sign(honest, { kid: undefined, jwk: own.publicJwk }, own);
      },
    ],
    [
      'HS256 with the public key for a secret',
      (one, honest) =>
        new SignJWT(honest)
          .setProtectedHeader({ alg: 'HS256', kid: one.signer.kid })
          .sign(new TextEncoder().encode(JSON.stringify(one.signer.publicJwk))),
    ],
    [
      'HS256 with the client id for a secret',
      (_, honest) =>
        new SignJWT(honest).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(CLIENT_ID.repeat(8))),
    ],
    ['of the type of our own sessions', (one, honest) => one.sign(honest, { typ: 'svc-owner+jwt' })],
    ['of the type of a sign-out', (one, honest) => one.sign(honest, { typ: 'logout+jwt' })],
    ['that is none', () => 'x.y.z'],
    ['that is empty', () => ''],
  ])('JW-29 an ID token %s is refused', async (_name, make) => {
    provider.token = (honest) => make(provider, honest);
    await refused(502);
  });

  test('an ID token with an address but without email_verified: the userinfo endpoint is read', async () => {
    provider.claims = { email: 'ann@acme.example' };
    provider.metadata = { userinfo_endpoint: `${provider.issuer}/userinfo` };
    provider.answers.set('/userinfo', (_request, response) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ sub: 'ann', email: 'ann@acme.example', email_verified: true })),
    );
    const { start } = await worldOf(provider);
    const browser = new Browser();
    expect((await browser.get(start)).status).toBe(200);
    expect(provider.seen).toContain('GET /userinfo');
  });

  test('a key set that also contains secrets, private keys and malformed entries verifies with its valid key', async () => {
    world.clock.skewMs = 20 * MINUTE_MS;
    const before = [...provider.keys];
    const fresh = await makeSigner();
    provider.keys = [{ kty: 'oct', kid: fresh.kid, k: 'c2VjcmV0', alg: 'HS256' }, { kty: 'RSA' }, {}, fresh.publicJwk];
    provider.clock = () => Date.now() + world.clock.skewMs;
    provider.claims = {
      ...provider.claims,
      exp: Math.floor(Date.now() / 1000) + 3600,
      iat: Math.floor(Date.now() / 1000),
    };
    provider.token = (honest) => provider.sign(honest, {}, fresh);
    await signsIn();
    provider.keys = before;
  });

  test.each<[string, string, number]>([
    ['/token', 'no JSON', 502],
    ['/token', 'nothing', 502],
    ['/token', 'a redirect', 502],
    ['/token', 'an error of its own', 502],
    ['/token', 'a cut connection', 502],
  ])('%s with %s fails the sign-in', async (path, what, status) => {
    provider.answers.set(path, (_, response) => lie(what, response));
    await refused(status);
  });

  test('valid responses of a megabyte are not read to their end', async () => {
    world.clock.skewMs = 0;
    provider.padding.set('/token', 1024 * 1024);
    await refused(502);
    provider.padding.set('/token', 100 * 1024);
    await signsIn();
  });

  test('text from the provider’s error is not shown on the page', async () => {
    provider.answers.set('/token', (_, response) =>
      response
        .writeHead(400, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: 'invalid_client', error_description: '<script>owned</script>' })),
    );
    expect((await refused(502)).text).not.toContain('owned');
  });

  test('a callback with an ID token in the query is refused', async () => {
    provider.callback = (parameters) => parameters.set('id_token', 'x.y.z');
    await refused(502);
  });

  test('a callback with a second code, without a code, or with code and error is refused', async () => {
    provider.callback = (parameters) => parameters.append('code', 'x');
    await refused(400);
    provider.callback = (parameters) => parameters.delete('code');
    await refused(400);
    provider.callback = (parameters) => parameters.set('error', 'access_denied');
    await refused(400);
  });
});

/** Sends one kind of invalid response. */
function lie(what: string, response: import('node:http').ServerResponse): void {
  if (what === 'no JSON') response.writeHead(200, { 'content-type': 'application/json' }).end('{');
  else if (what === 'nothing') response.writeHead(204).end();
  else if (what === 'a redirect') response.writeHead(302, { location: '/elsewhere' }).end();
  else if (what === 'an error of its own') response.writeHead(500).end('oops');
  else response.destroy();
}

describe('invalid discovery metadata', () => {
  type Different = (issuer: string) => Record<string, unknown> | string;
  const ANN = { email: 'ann@acme.example', email_verified: true };
  /** Makes the provider publish this metadata from now on. */
  const describeAs = async (provider: LyingProvider, different: Different) => {
    provider.answers.clear();
    const honest = await (await fetch(`${provider.issuer}/.well-known/openid-configuration`)).json();
    provider.answers.set('/.well-known/openid-configuration', (_, response) => {
      const said = different(provider.issuer);
      if (typeof said === 'string') return lie(said, response);
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ ...(honest as object), ...said }));
    });
    provider.claims = ANN;
  };
  const expectRefused = async ({ world, start }: Awaited<ReturnType<typeof worldOf>>): Promise<Visit> => {
    const browser = new Browser();
    const visit = await browser.get(start);
    expect((await send(`${world.running.baseUrl}/health`, {})).status).toBe(200);
    expect(visit.status, visit.text).toBe(502);
    expect(browser.cookies.filter(({ name }) => name.startsWith('svc_owner'))).toEqual([]);
    expect(visit.text).not.toMatch(/evil|169\.254|10\.0\.0\.1|passwd/);
    return visit;
  };

  describe('and nothing of it is used: the metadata has', () => {
    const provider = shared(() => startLyingProvider());
    let given: Awaited<ReturnType<typeof worldOf>>;
    beforeAll(async () => {
      given = await worldOf(provider);
    });

    // A failed discovery is not cached, so each of these cases is a first discovery.
    test.each<[string, Different]>([
      ['the name of another provider', () => ({ issuer: 'https://accounts.evil.test' })],
      ['no name', () => ({ issuer: undefined })],
      ['no JSON', () => 'no JSON'],
      ['nothing', () => 'nothing'],
      ['a redirect', () => 'a redirect'],
      ['an error', () => 'an error of its own'],
      ['a cut connection', () => 'a cut connection'],
    ])('%s', async (_name, different) => {
      await describeAs(provider, different);
      await expectRefused(given);
    });

    test('an issuer with an additional slash, which the page explains', async () => {
      await describeAs(provider, (issuer) => ({ issuer: `${issuer}/` }));
      expect((await expectRefused(given)).text).toContain('differs from the configured one');
    });

    test('a megabyte of valid metadata, or of keys; after a failure valid responses are accepted', async () => {
      provider.beHonest();
      provider.claims = ANN;
      for (const path of ['/.well-known/openid-configuration', '/jwks']) {
        provider.padding.clear();
        provider.padding.set(path, 1024 * 1024);
        expect((await new Browser().get(given.start)).status).toBe(502);
      }
      provider.padding.clear();
      given.world.clock.skewMs = 31_000;
      expect((await new Browser().get(given.start)).status).toBe(200);
    });
  });

  /** Signs in with a provider that publishes this metadata, and that the broker contacts for the first time. */
  const beginWith = async (different: Different) => {
    const provider = await startLyingProvider();
    await describeAs(provider, different);
    return await expectRefused(await worldOf(provider));
  };

  test.each<[string, Different]>([
    ['no place to sign in', () => ({ authorization_endpoint: undefined })],
    ['a script for a place to sign in', () => ({ authorization_endpoint: 'javascript:alert(1)' })],
    ['no place for tokens', () => ({ token_endpoint: undefined })],
    ['a place for tokens inside our network', () => ({ token_endpoint: 'http://169.254.169.254/token' })],
    ['a place for keys inside our network', () => ({ jwks_uri: 'http://10.0.0.1/jwks' })],
    ['no place for keys', () => ({ jwks_uri: undefined })],
    ['a file for a place of keys', () => ({ jwks_uri: 'file:///etc/passwd' })],
  ])('metadata with %s is refused', async (_name, different) => {
    await beginWith(different);
  });

  test('endpoints on another port of this machine are not called: only the issuer’s is allowed', async () => {
    const reached: string[] = [];
    const other: Server = createServer((request, response) => {
      reached.push(request.url!);
      response.end('{}');
    });
    const port = await listenOnLoopback(other);
    try {
      for (const endpoint of ['token_endpoint', 'jwks_uri'])
        await beginWith(() => ({ [endpoint]: `http://127.0.0.1:${port}/x` }));
      expect(reached).toEqual([]);
    } finally {
      other.close();
    }
  });

  test('a platform at the provider’s address cannot be called', async () => {
    const provider = await startLyingProvider();
    const { organisation } = await worldOf(provider);
    await organisation.platform({ manifest: { base_url: `${provider.issuer}/v1` } });
    const agent = await organisation.agent();
    provider.seen.length = 0;
    const answer = await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' });
    expect([answer.status, provider.seen]).toEqual([502, []]);
  });
});

describe('an unavailable provider', () => {
  test('the broker starts without the provider, reports that at sign-ins, and uses it once it is available', async () => {
    const provider = await startIdentityProvider({ secret: false });
    await provider.down();
    const { world, start } = await worldOf(provider);
    const host = new URL(provider.issuer).host;
    const visit = await expectStatus(502, new Browser().get(start));
    expect(visit.text).toContain(`${host} could not be reached`);
    expectEnvelope(await send(start, {}), 502, 'identity_provider_failed');
    expect((await send(`${world.running.baseUrl}/owner/sign-in-options`, {})).body.method).toBe('oidc');
    expect((await send(`${world.running.baseUrl}/health`, {})).status).toBe(200);
    await provider.up();
    await provider.serve(world.running.baseUrl, { claimsInToken: true });
    provider.people.set('ann', { email: 'ann@acme.example', email_verified: true });
    const ann = new Browser();
    // A public client, with the address in the ID token.
    expect((await provider.signIn(ann, 'ann', start)).status).toBe(200);
    expect(provider.seen).not.toContain('/me');
    // Unavailable again: existing sessions stay valid, and new sign-ins fail with an explanation.
    await provider.down();
    const cookie = ann.cookieFor(`${world.running.baseUrl}/owner/me`);
    expect((await send(`${world.running.baseUrl}/owner/me`, { headers: { cookie } })).body.sign_in).toBe('oidc');
    const stranded = new Browser();
    stranded.stopAt = (url) => url.host === host;
    await stranded.get(start);
    const state = new URL(stranded.seen.at(-1)!).searchParams.get('state')!;
    const query = new URLSearchParams({ code: 'x', state, iss: provider.issuer });
    const back = await expectStatus(502, stranded.get(`${world.running.baseUrl}/console/oidc/callback?${query}`));
    expect(back.text).toContain('could not be reached');
  });

  test('a provider that never answers is abandoned, and does not delay stopping the broker for long', async () => {
    const silent = createServer(() => {});
    const port = await listenOnLoopback(silent);
    const issuer = `http://127.0.0.1:${port}`;
    const world = await startWorld('sqlite', { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: 'x' });
    const waiting = send(`${world.running.baseUrl}/console/oidc/start`, {}).catch(() => undefined);
    await expect.poll(() => new Promise<number>((resolve) => silent.getConnections((_, n) => resolve(n)))).toBe(1);
    const begun = performance.now();
    await world.running.stop();
    expect(performance.now() - begun).toBeLessThan(25_000);
    expect((await waiting)?.status ?? 502).toBe(502);
    silent.closeAllConnections();
    silent.close();
  }, 180_000);
});

test('CX-11 at log level trace no secret, code, state, cookie or token is logged, whatever fails', async () => {
  const provider = await startLyingProvider();
  provider.claims = { email: 'ann@acme.example', email_verified: true };
  const issued: string[] = [];
  provider.token = async (honest) => {
    const token = await provider.sign(honest);
    issued.push(token, String(honest.nonce));
    return token;
  };
  const broker = spawnBroker({
    PORT: '0',
    LOG_LEVEL: 'trace',
    AGENT_BROKER_DATA: newFolder(),
    ...provider.settings,
    OIDC_CLIENT_SECRET: 'CANARY-client-secret-0123456789',
  });
  const baseUrl = (await broker.serve())!;
  try {
    const browser = new Browser();
    const start = `${baseUrl}/console/oidc/start`;
    const statuses = [(await browser.get(start)).status];
    const bearer = (token: string) => send(`${baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
    statuses.push((await bearer(issued[0]!)).status, (await bearer(`${issued[0]!.slice(0, -9)}AAAAAAAAA`)).status);
    for (const what of ['no JSON', 'an error of its own', 'a cut connection']) {
      provider.answers.set('/token', (_, response) => lie(what, response));
      statuses.push((await browser.get(start)).status);
    }
    const json = { 'content-type': 'application/json' };
    const quoting: ((quoted: string) => string)[] = [
      (quoted) => JSON.stringify({ error: 'invalid_client', error_description: quoted, echo: quoted }),
      (quoted) => JSON.stringify({ error: quoted, error_description: 'no' }),
      (quoted) => quoted,
    ];
    const basic: string[] = [];
    for (const answer of quoting) {
      provider.answers.set('/token', ({ headers }, response, body) => {
        basic.push(`${headers.authorization}`.slice('Basic '.length));
        // The secret comes first, because a parser's error quotes the beginning of its input.
        const plain = decodeURIComponent(Buffer.from(basic.at(-1)!, 'base64').toString().split(':')[1]!);
        response.writeHead(400, json).end(answer(`${plain} ${headers.authorization} ${body}`));
      });
      statuses.push((await browser.get(start)).status);
    }
    // Ann is not invited in this store.
    expect(statuses).toEqual([403, 401, 401, 502, 502, 502, 502, 502, 502]);
    const asked = browser.seen.flatMap((url) => [...new URL(url).searchParams]);
    const secrets = asked.flatMap(([name, value]) => (/^(code|state|nonce|code_challenge)$/.test(name) ? [value] : []));
    secrets.push(...issued, ...basic, 'CANARY-client-secret-0123456789', 'CANARY-cli');
    expect(secrets.length).toBeGreaterThan(18);
    const { stdout, stderr } = broker.output();
    expect(stderr).toContain('invalid_client');
    expect(secrets.filter((secret) => (stdout + stderr).includes(secret))).toEqual([]);
  } finally {
    broker.signal('SIGKILL');
    await broker.ended;
  }
});

test('AP-16 with https a sign-in that a sibling host planted in the browser is not finished', async () => {
  const provider = await startLyingProvider();
  provider.claims = { email: 'ann@acme.example', email_verified: true };
  const world = await startWorld('sqlite', { ...provider.settings, BASE_URL: 'https://broker.acme.example' });
  const { id } = await world.organisation();
  const { config, store } = world.running.broker;
  await store.db
    .updateTable('owners')
    .set({ email: 'ann@acme.example', origin: 'added' })
    .where('organisation_id', '=', id)
    .execute();
  const here: string = JSON.parse(readFileSync(runFile(config.dataFolder), 'utf8')).url;
  const begun = await fetch(`${here}/console/oidc/start`, { redirect: 'manual' });
  const [set = ''] = begun.headers.getSetCookie();
  // A browser takes a cookie of this prefix from no other host, nor from one for the whole domain (RFC 6265bis section 4.1.3.2).
  expect(set).toMatch(/^__Host-svc_oidc_[0-9a-f]{16}=[\w-]+; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax; Secure$/);
  const back = new URL((await fetch(begun.headers.get('location')!, { redirect: 'manual' })).headers.get('location')!);
  expect(back.origin).toBe('https://broker.acme.example');
  const [cookie = ''] = set.split(';');
  const callback = (sent: string) => send(`${here}${back.pathname}${back.search}`, { headers: { cookie: sent } });
  for (const name of ['__Secure-svc_oidc_', 'svc_oidc_'])
    expectEnvelope(await callback(cookie.replace('__Host-svc_oidc_', name)), 400, 'invalid_request');
  const done = await expectStatus(200, callback(cookie));
  expect(done.headers.getSetCookie()[0]).toMatch(/^__Host-svc_owner(_\d+)?=/);
});

test('requests to the sign-in routes are limited by address', async () => {
  const provider = await startLyingProvider();
  const world = await startWorld('sqlite', { ...provider.settings, AGENT_BROKER_LIMIT_FACTOR: '0.05' });
  const ask = (path: string) => send(`${world.running.baseUrl}/console/oidc/${path}`, {});
  expect([(await ask('start')).status, (await ask('callback')).status, (await ask('start')).status]).toEqual([
    302, 400, 302,
  ]);
  for (const path of ['start', 'callback']) {
    const limited = await ask(path);
    expectEnvelope(limited, 429, 'rate_limited');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
  }
});
