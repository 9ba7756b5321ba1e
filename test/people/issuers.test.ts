/** Issuers of assertions that are slow, down, huge, somewhere else or of somebody else: nobody is believed, and nothing is sent. */
import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportSPKI, importJWK } from 'jose';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../world/authorization-server.ts';
import { Browser, type Visit } from '../world/browser.ts';
import { govern, READ_DOCS } from '../world/docs-platform.ts';
import { CLIENT_ID, type LyingProvider, makeSigner, startLyingProvider } from '../world/lying-provider.ts';
import { agentOfPeople, documentOf, onward, start } from '../world/people.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const MINUTE_MS = 60_000;
/** So many seconds from now on. */
class Ahead {
  readonly seconds: number;
  constructor(seconds: number) {
    this.seconds = seconds;
  }
}

const JSON_TYPE = { 'content-type': 'application/json' };

describe.each(STORES)(`issuers of assertions that lie on %s${postgresNote}`, (store) => {
  let server: AuthorizationServer;
  let issuer: LyingProvider;
  /** Of which nothing is known yet. */
  let others: LyingProvider[];
  /** Where nothing may be asked: it is on a private address that nobody allowed. */
  let inside: Server;
  let asked: string[];
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;

  beforeAll(async () => {
    server = await startAuthorizationServer();
    issuer = await startLyingProvider();
    others = await Promise.all([1, 2, 3, 4].map(() => startLyingProvider()));
    asked = [];
    inside = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ keys: issuer.keys }));
    });
    await new Promise<void>((resolve) => inside.listen(0, '127.0.0.1', resolve));
    world = await startWorld(store, {
      AGENT_BROKER_ALLOW_PRIVATE: [server.issuer, issuer.issuer, ...others.map((one) => one.issuer)]
        .map((one) => new URL(one).host)
        .join(),
    });
    server.serve(world.running.baseUrl);
    return () => void inside.close();
  });
  beforeEach(async () => {
    // Keys and metadata of before are too old to be used.
    world.clock.skewMs += 61 * MINUTE_MS;
    issuer.beHonest();
    issuer.clock = () => world.running.broker.clock();
    issuer.seen.length = 0;
    asked.length = 0;
    server.bearers.length = 0;
    organisation = await world.organisation();
    await trust();
    agent = await agentOfPeople(organisation);
  });

  const trust = async (more: object = {}, by = organisation) => {
    const caller_issuers = [{ issuer: issuer.issuer, audience: 'agents', client_id: CLIENT_ID, ...more }];
    const applied = await govern(by, documentOf(server, { asserted: [] }, { caller_issuers }));
    expect(applied.status, applied.text).toBe(200);
  };
  const insideUrl = () => `http://127.0.0.1:${(inside.address() as AddressInfo).port}/keys`;
  const claims = (different: object = {}) => issuer.honest({ aud: 'agents', ...different });
  const assertion = async (different: object = {}) => await issuer.sign(claims(different));
  const actAs = async (jwt: string, by = agent) => await by.act({ ...READ_DOCS, caller: { assertion: jwt } });
  const refused = async (jwt: string, says: RegExp) => {
    const answer = await actAs(jwt);
    expect([answer.status, answer.body.reason, answer.body.consent_url]).toEqual([412, 'no_caller', undefined]);
    expect(answer.body.detail).toMatch(says);
    expect(answer.text).not.toContain(jwt);
    const started = await agent.request('POST', '/v1/consent/caller/start', {
      body: JSON.stringify({ platform: 'docs', caller: { assertion: jwt } }),
      headers: { 'content-type': 'application/json' },
    });
    expect([started.status, started.body.error]).toEqual([400, 'invalid_request']);
    expect(server.bearers).toEqual([]);
  };
  /** It is somebody, who has not consented yet. */
  const believed = async (jwt: string, by = agent) => expect((await actAs(jwt, by)).body.reason).toBe('not_consented');

  describe('its keys', () => {
    test.each<[string, () => void]>([
      ['10 MB', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('x'.repeat(1e7)))],
      ['10 MB that would be keys', () => issuer.padding.set('/jwks', 1e7)],
      ['an error', () => answerKeys((response) => response.writeHead(500).end())],
      ['no JSON', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('<p>keys</p>'))],
      ['no keys', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('{"keys":"none"}'))],
      ['half an answer', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('{"keys":['))],
      ['a closed connection', () => answerKeys((response) => response.socket?.destroy())],
      ['a redirect', () => answerKeys((response) => response.writeHead(302, { location: insideUrl() }).end())],
    ])('are %s: nobody is believed, and it is asked once', async (_what, lie) => {
      lie();
      const jwt = await assertion();
      await refused(jwt, /cannot be fetched just now/);
      const count = issuer.seen.filter((path) => path === 'GET /jwks').length;
      for (let times = 0; times < 5; times++) await refused(jwt, /cannot be fetched just now/);
      expect(issuer.seen.filter((path) => path === 'GET /jwks')).toHaveLength(count);
      expect(asked).toEqual([]);
      // It is well again.
      issuer.beHonest();
      issuer.clock = () => world.running.broker.clock();
      world.clock.skewMs += MINUTE_MS;
      await believed(await assertion());
    });

    test.each<[string, () => Record<string, unknown>]>([
      ['at an address inside', () => ({ jwks_uri: insideUrl() })],
      ['a file', () => ({ jwks_uri: 'file:///etc/passwd' })],
      ['nowhere', () => ({ jwks_uri: undefined })],
      ['said to be those of another issuer', () => ({ issuer: 'https://id.example' })],
    ])('are %s, as its metadata say: nobody is believed', async (_what, metadata) => {
      const other = others.pop()!;
      other.metadata = metadata();
      await trust({ issuer: other.issuer });
      other.clock = () => world.running.broker.clock();
      await refused(await other.sign(other.honest({ aud: 'agents' })), /cannot be fetched just now/);
      expect(asked).toEqual([]);
    });

    test('are at an address inside, which an owner wrote: it is not asked', async () => {
      await trust({ jwks_uri: insideUrl() });
      await refused(await assertion(), /cannot be fetched just now/);
      expect(asked).toEqual([]);
    });

    test('are slow: those of before are good meanwhile, and calls at once share one request', async () => {
      await believed(await assertion());
      issuer.seen.length = 0;
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      issuer.answers.set('/jwks', async (_request, response) => {
        await held;
        response.writeHead(200, JSON_TYPE).end(JSON.stringify({ keys: issuer.keys }));
      });
      world.clock.skewMs += 6 * MINUTE_MS;
      const calls = Promise.all(Array.from({ length: 10 }, async () => await believed(await assertion())));
      await expect.poll(() => issuer.seen).toContain('GET /jwks');
      release();
      await calls;
      expect(issuer.seen.filter((path) => path === 'GET /jwks')).toHaveLength(1);
      // Down: with keys that are not an hour old yet.
      issuer.answers.set('/jwks', (_request, response) => void response.socket?.destroy());
      world.clock.skewMs += 30 * MINUTE_MS;
      await believed(await assertion());
      world.clock.skewMs += 31 * MINUTE_MS;
      await refused(await assertion(), /cannot be fetched just now/);
    });

    test('are rotated: the new one is found, the old one is not believed any more, and made-up ones cost one request', async () => {
      const old = issuer.signer;
      await believed(await assertion());
      issuer.signer = await makeSigner();
      issuer.keys = [issuer.signer.publicJwk];
      world.clock.skewMs += MINUTE_MS;
      await believed(await assertion());
      await refused(await issuer.sign(claims(), {}, old), /cannot be verified/);
      issuer.seen.length = 0;
      for (let times = 0; times < 5; times++) {
        const stranger = await makeSigner();
        await refused(await issuer.sign(claims(), {}, stranger), /cannot be verified/);
      }
      expect(issuer.seen.length).toBeLessThanOrEqual(1);
    });

    const answerKeys = (answer: (response: Parameters<Parameters<LyingProvider['answers']['set']>[1]>[1]) => void) =>
      issuer.answers.set('/jwks', (_request, response) => answer(response));
  });

  describe('an assertion', () => {
    test('with the public key as the secret of HS256 (RFC 8725 section 2.1)', async () => {
      await believed(await assertion());
      const key = await importJWK(issuer.signer.publicJwk, 'RS256', { extractable: true });
      const pem = await exportSPKI(key as Parameters<typeof exportSPKI>[0]);
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      for (const secret of [pem, pem.trim(), issuer.signer.publicJwk.n!, JSON.stringify(issuer.signer.publicJwk)]) {
        const input = `${part({ alg: 'HS256', kid: issuer.signer.kid })}.${part(claims())}`;
        await refused(
          `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`,
          /cannot be verified/,
        );
      }
    });

    test.each<[string, object, RegExp]>([
      ['not valid yet', { nbf: new Ahead(120) }, /cannot be verified/],
      ['without an end', { exp: undefined }, /cannot be verified/],
      ['without a beginning', { iat: undefined }, /cannot be verified/],
      ['with an end that is no number', { exp: 'tomorrow' }, /cannot be verified/],
      ['of 61 minutes', { exp: new Ahead(3660) }, /longer than an hour/],
      ['for the broker’s client at the issuer: an ID token', { aud: CLIENT_ID }, /another audience/],
      ['for audiences that begin like it', { aud: ['agents2', 'agent'] }, /another audience/],
      ['about nobody', { sub: '' }, /does not say who/],
      ['about somebody with a line break', { sub: 'ann\nbob' }, /does not say who/],
      ['about somebody with too long a name', { sub: 'a'.repeat(257) }, /does not say who/],
      ['about a number', { sub: 7 }, /cannot be verified|does not say who/],
    ])('%s', async (_what, different, says) => {
      const now = Math.floor(issuer.clock() / 1000);
      const moments = Object.entries(different).map(([name, value]) => [
        name,
        value instanceof Ahead ? now + value.seconds : value,
      ]);
      await refused(await assertion(Object.fromEntries(moments)), says);
    });

    test('of an issuer that only another organisation trusts, or trusts for another audience', async () => {
      const other = await world.organisation();
      await trust({ audience: 'theirs' }, other);
      const theirs = await agentOfPeople(other);
      const mine = await assertion();
      await believed(mine);
      expect((await actAs(mine, theirs)).body.reason).toBe('no_caller');
      await believed(await assertion({ aud: 'theirs' }), theirs);
      const none = await world.organisation();
      expect((await govern(none, documentOf(server, { asserted: [] }))).status).toBe(200);
      expect((await actAs(mine, await agentOfPeople(none))).body.reason).toBe('no_caller');
    });

    test('whose issuer is written in another way, or that is signed as the organisation does not take', async () => {
      for (const iss of [`${issuer.issuer}/`, issuer.issuer.replace('127.0.0.1', 'localhost'), [issuer.issuer], null])
        await refused(await assertion({ iss }), /not of an issuer that the organisation trusts/);
      await trust({ algorithms: ['ES256'] });
      await refused(await assertion(), /an algorithm that the organisation does not take/);
    });

    test.each(['', '.', '..', 'a.b.c', 'é.é.é', `${'a'.repeat(8_000)}.b.c`])('that is none: %j', async (jwt) => {
      const answer = await actAs(jwt);
      expect([400, 412]).toContain(answer.status);
      expect(server.bearers).toEqual([]);
    });
  });

  describe('signing in at it', () => {
    const begin = async (sub = 'ann') => {
      const { body } = await actAs(await assertion({ sub }));
      const browser = new Browser();
      return { browser, url: body.consent_url as string, to: await start(browser, body.consent_url) };
    };
    const notOn = (visit: Visit, status: number) => {
      expect([visit.status, visit.text.includes('http-equiv="refresh"')], visit.text).toEqual([status, false]);
      expect(server.seen.filter((path) => path === 'GET /auth')).toEqual([]);
    };
    beforeEach(() => {
      server.seen.length = 0;
    });

    test('the same person goes on to the platform', async () => {
      const { browser, to } = await begin();
      expect(onward(await browser.get(to))).toContain(`${server.issuer}/auth`);
    });

    test.each<[string, () => void]>([
      [
        'the name of another issuer in the answer (RFC 9207)',
        () => (issuer.callback = (one) => one.set('iss', 'https://id.example')),
      ],
      ['no name of the issuer, which said that it would', () => (issuer.callback = (one) => one.delete('iss'))],
      ['an error', () => (issuer.callback = (one) => one.set('error', 'access_denied'))],
      ['another code', () => (issuer.callback = (one) => one.set('code', 'made-up'))],
      ['two codes', () => (issuer.callback = (one) => one.append('code', 'made-up'))],
      ['an ID token for another client', () => (issuer.claims = { aud: 'another' })],
      ['an ID token of another sign-in', () => (issuer.claims = { nonce: 'another' })],
      ['an ID token of another issuer', () => (issuer.claims = { iss: 'https://id.example' })],
      ['an ID token that is over', () => (issuer.claims = { iat: 1_000, exp: 2_000 })],
      ['somebody else', () => (issuer.claims = { sub: 'bob' })],
      ['somebody with other letters', () => (issuer.claims = { sub: 'Ann' })],
      ['nobody', () => (issuer.claims = { sub: undefined })],
      ['an assertion in place of an ID token', () => (issuer.token = () => assertion())],
    ])('%s: nobody goes on', async (_what, lie) => {
      const { browser, to } = await begin();
      lie();
      notOn(await browser.get(to), 403);
    });

    test('its answer counts once, in one browser, with its own state', async () => {
      const { browser, to } = await begin();
      browser.stopAt = ({ pathname }) => pathname === '/me/consent/signed-in';
      const { url } = await browser.get(to);
      browser.stopAt = undefined;
      const other = await begin('bob');
      notOn(await other.browser.get(url), 400);
      notOn(await new Browser().get(url), 400);
      const mixed = new URL(url);
      mixed.searchParams.set('state', `sta_${'A'.repeat(43)}`);
      notOn(await browser.get(mixed.href), 400);
      expect((await browser.get(`${url}&state=x`)).status).toBe(400);
      expect(onward(await browser.get(url))).toContain(`${server.issuer}/auth`);
      expect((await browser.get(url)).status).toBe(400);
      // The platform's way back takes none of it.
      const platforms = url.replace('/me/consent/signed-in', '/console/connections/callback');
      expect((await browser.get(platforms)).status).not.toBe(200);
    });

    test('an issuer that is trusted no more, or has another client now, ends it', async () => {
      const { browser, to } = await begin();
      browser.stopAt = ({ pathname }) => pathname === '/me/consent/signed-in';
      const { url } = await browser.get(to);
      browser.stopAt = undefined;
      expect((await govern(organisation, documentOf(server, { asserted: [] }, { caller_issuers: [] }))).status).toBe(
        200,
      );
      notOn(await browser.get(url), 409);
    });
  });
});
