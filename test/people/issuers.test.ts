/** Issuers of assertions that are slow, down, huge, at an internal address or of somebody else: their assertions are refused, and nothing is sent. */
import { createHmac } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import { exportSPKI, importJWK } from 'jose';
import { describe, expect, test } from 'vitest';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { govern } from '../world/docs-platform.ts';
import { agentOfPeople, documentOf } from '../world/people.ts';
import { CLIENT_ID, type LyingProvider, makeSigner } from '../world/servers/lying-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { WRITE } from '../world/world.ts';
import { givenLyingIssuer, JSON_TYPE } from './issuer-world.ts';

/** A time so many seconds from now. */
class Ahead {
  readonly seconds: number;
  constructor(seconds: number) {
    this.seconds = seconds;
  }
}

describe.each(ONE_STORE)(`faulty issuers of assertions on %s${postgresNote}`, (store) => {
  const {
    server,
    issuer,
    others,
    asked,
    world,
    organisation,
    trust,
    insideUrl,
    claims,
    assertion,
    actAs,
    refused,
    believed,
  } = givenLyingIssuer(store);

  describe('the keys of an issuer', () => {
    test.each<[string, () => void]>([
      ['10 MB', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('x'.repeat(1e7)))],
      ['10 MB that would be keys', () => issuer.padding.set('/jwks', 1e7)],
      ['an error', () => answerKeys((response) => response.writeHead(500).end())],
      ['no JSON', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('<p>keys</p>'))],
      ['no keys', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('{"keys":"none"}'))],
      ['half an answer', () => answerKeys((response) => response.writeHead(200, JSON_TYPE).end('{"keys":['))],
      ['a closed connection', () => answerKeys((response) => response.socket?.destroy())],
      ['a redirect', () => answerKeys((response) => response.writeHead(302, { location: insideUrl() }).end())],
    ])('are %s: assertions are refused, and the keys are requested once', async (_what, lie) => {
      lie();
      const jwt = await assertion();
      await refused(jwt, /cannot be fetched at the moment/);
      const count = issuer.seen.filter((path) => path === 'GET /jwks').length;
      for (let times = 0; times < 5; times++) await refused(jwt, /cannot be fetched at the moment/);
      expect(issuer.seen.filter((path) => path === 'GET /jwks')).toHaveLength(count);
      expect(asked).toEqual([]);
      // The issuer is available again.
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
    ])('are %s according to the metadata: assertions are refused', async (_what, metadata) => {
      const other = others.pop()!;
      other.metadata = metadata();
      await trust({ issuer: other.issuer });
      other.clock = () => world.running.broker.clock();
      await refused(await other.sign(other.honest({ aud: 'agents' })), /cannot be fetched at the moment/);
      expect(asked).toEqual([]);
    });

    test('at an internal address that an owner configured are not requested', async () => {
      await trust({ jwks_uri: insideUrl() });
      await refused(await assertion(), /cannot be fetched at the moment/);
      expect(asked).toEqual([]);
    });

    test('are slow: cached ones stay valid meanwhile, and concurrent calls share one request', async () => {
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
      // Unavailable, with cached keys that are younger than five minutes.
      issuer.answers.set('/jwks', (_request, response) => void response.socket?.destroy());
      world.clock.skewMs += 4 * MINUTE_MS;
      await believed(await assertion());
      world.clock.skewMs += 2 * MINUTE_MS;
      await refused(await assertion(), /cannot be fetched at the moment/);
    });

    test.each<[string, (by: TestAgent, jwt: string) => Promise<Answer>]>([
      [
        'a call with an Idempotency-Key',
        (by, jwt) =>
          by.act(
            { ...WRITE, platform: 'plain', scope: 'plain:write', caller: { assertion: jwt } },
            { 'idempotency-key': 'k' },
          ),
      ],
      [
        'a request of a client that waits',
        (by, jwt) =>
          by.request('POST', '/proxy/plain-main/items', {
            body: '{}',
            headers: { ...JSON_TYPE, 'x-svc-caller': `jwt ${jwt}` },
          }),
      ],
    ])('are slow: when the agent is suspended meanwhile, %s is not made', async (_what, call) => {
      const scopes = { 'plain:write': ['POST /items'] };
      await organisation.platform({ id: 'plain', manifest: { base_url: `${issuer.issuer}/v1`, scopes } });
      const grants = { plain: { scopeList: ['plain:write'] } };
      const caller = await organisation.agent({ rules: [{ effect: 'allow' }], grants });
      caller.clock = () => world.running.broker.clock();
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      issuer.answers.set('/v1/items', (_request, response) => response.writeHead(200, JSON_TYPE).end('{}'));
      issuer.answers.set('/jwks', async (_request, response) => {
        await held;
        response.writeHead(200, JSON_TYPE).end(JSON.stringify({ keys: issuer.keys }));
      });
      const answer = call(caller, await assertion());
      await expect.poll(() => issuer.seen).toContain('GET /jwks');
      await expectStatus(200, organisation.ask('POST', `/owner/agents/${caller.agentId}/suspend`, { reason: 'x' }));
      await setTimeout(150);
      release();
      const { status, body } = await answer;
      expect([status, body.reason]).toEqual([403, 'agent_suspended']);
      expect(issuer.seen).not.toContain('POST /v1/items');
    });

    test('are rotated: the new key is fetched, the old one is refused, and made-up key ids cause one request', async () => {
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

  describe('an assertion is refused', () => {
    test('with HS256 and the public key as secret (RFC 8725 section 2.1)', async () => {
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
      ['not valid yet', { nbf: new Ahead(120) }, /cannot be verified\. The token's nbf is not/],
      ['issued in the future', { iat: new Ahead(600), exp: new Ahead(900) }, /issued in the future \(iat\)/],
      ['without an end', { exp: undefined }, /The token's exp is missing/],
      ['without a beginning', { iat: undefined }, /The token's iat is missing/],
      ['with an end that is no number', { exp: 'tomorrow' }, /cannot be verified/],
      ['of 61 minutes', { exp: new Ahead(3660) }, /longer than an hour/],
      ['for the broker’s client at the issuer: an ID token', { aud: CLIENT_ID }, /another audience/],
      ['for audiences that begin like it', { aud: ['agents2', 'agent'] }, /another audience/],
      ['about nobody', { sub: '' }, /identifies the person is missing/],
      ['about somebody with a line break', { sub: 'ann\nbob' }, /identifies the person is missing/],
      ['about somebody with too long a name', { sub: 'a'.repeat(257) }, /identifies the person is missing/],
      ['about a number', { sub: 7 }, /cannot be verified|identifies the person is missing/],
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
      await believed(await assertion({ aud: ['others', 'agents'] }));
      expect((await actAs(mine, theirs)).body.reason).toBe('no_caller');
      await believed(await assertion({ aud: 'theirs' }), theirs);
      const none = await world.organisation();
      expect((await govern(none, documentOf(server, { asserted: [] }))).status).toBe(200);
      expect((await actAs(mine, await agentOfPeople(none))).body.reason).toBe('no_caller');
    });

    test('with another spelling of the issuer, or an algorithm that the organisation does not accept', async () => {
      for (const iss of [`${issuer.issuer}/`, issuer.issuer.replace('127.0.0.1', 'localhost')])
        await refused(await assertion({ iss }), /not of an issuer that the organisation trusts/);
      for (const iss of [[issuer.issuer], null])
        await refused(await assertion({ iss }), /not a JWT that names its issuer/);
      await trust({ algorithms: ['ES256'] });
      await refused(await assertion(), /an algorithm that the organisation does not accept/);
    });

    test.each(['', '.', '..', 'a.b.c', 'é.é.é', `${'a'.repeat(8_000)}.b.c`])('that is malformed: %j', async (jwt) => {
      const answer = await actAs(jwt);
      expect([400, 412]).toContain(answer.status);
      expect(server.bearers).toEqual([]);
    });
  });
});
