/** Connections with client credentials and to service accounts: tokens that the broker gets without a person. */
import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { attentionOf } from '../world/browser/connecting.ts';
import { givenReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { ACCOUNT, CLIENT_ID, CLIENT_SECRET, KEY_ID } from './token-platform.ts';
import { givenTokenWorld, type Kind, READ, taken, WRITE } from './token-world.ts';

const KINDS: Kind[] = ['client_credentials', 'service_account'];

describe.each(ONE_STORE)(`tokens without a person on %s${postgresNote}`, (store) => {
  const { host, world, organisation, apply, agent: newAgent, secretOf } = givenTokenWorld(store);
  const applied = (...terms: Parameters<typeof apply>) => expectStatus(200, apply(...terms));
  const firstConnection = async () => (await organisation.ask('GET', '/owner/connections')).body.connections[0];

  test('a client authenticates with Basic, or in the form when the manifest says so', async () => {
    await applied('client_credentials', { parameters: { audience: 'https://api.example/' } });
    const agent = await newAgent();
    const answer = await taken(agent);
    // The platform echoes the token, which is redacted.
    expect(answer.body.data.echo).toBe('you sent [redacted]');
    await taken(agent, WRITE);
    await applied('client_credentials', { token_endpoint_auth_method: 'client_secret_post' });
    await taken(agent);
    const form = { grant_type: 'client_credentials', scope: 'reports.read reports.write' };
    expect(host.granted).toEqual([
      { method: 'basic', form: { ...form, audience: 'https://api.example/' } },
      { method: 'post', form: { ...form, client_id: CLIENT_ID, client_secret: CLIENT_SECRET } },
    ]);
  });

  test('a service account signs an assertion, with a subject when the manifest names one', async () => {
    await applied('service_account');
    const agent = await newAgent();
    await taken(agent);
    await applied('service_account', { subject: 'team@example.com', scopes: ['one'] });
    await taken(agent);
    const [first, second] = host.granted.map(({ claims }) => claims);
    const common = { iss: ACCOUNT, kid: KEY_ID, aud: `${host.url}/token` };
    expect(first).toMatchObject({ ...common, scope: 'reports.read reports.write' });
    expect(first).not.toHaveProperty('sub');
    expect(second).toMatchObject({ ...common, scope: 'one', sub: 'team@example.com' });
  });

  test.each(KINDS)('%s: many concurrent calls make one token request, and a restart makes none', async (kind) => {
    await applied(kind);
    host.slowMs = 200;
    const agents = await Promise.all(Array.from({ length: 5 }, newAgent));
    await Promise.all(agents.flatMap((agent) => Array.from({ length: sized(4, 20) }, () => taken(agent))));
    expect(host.granted).toHaveLength(1);
    await world.restart();
    host.now = () => world.running.broker.clock();
    await taken(agents[0]!);
    expect(host.granted).toHaveLength(1);
  });

  test('a token is not used within five minutes of its expiry, and never for longer than an hour', async () => {
    await applied('client_credentials');
    const agent = await newAgent();
    host.expiresIn = '3600';
    await taken(agent);
    world.clock.skewMs = 54 * 60_000;
    await taken(agent);
    expect(host.granted).toHaveLength(1);
    // A token without a lifetime, or with a long one, is requested again after an hour.
    for (const told of [undefined, 86_400 * 365]) {
      world.clock.skewMs += 2 * 60_000;
      host.expiresIn = told;
      const before = host.granted.length;
      await taken(agent);
      expect(host.granted).toHaveLength(before + 1);
      world.clock.skewMs += 54 * 60_000;
      await taken(agent);
      expect(host.granted).toHaveLength(before + 1);
    }
  });

  test('a token that the platform refuses is replaced once, and the call is sent again', async () => {
    await applied('client_credentials');
    const agent = await newAgent();
    await taken(agent);
    world.clock.skewMs = 60_000;
    host.issued.clear();
    await taken(agent);
    expect(host.granted).toHaveLength(2);
    expect(host.calls).toHaveLength(3);
  });

  test('another secret leads to another token', async () => {
    await applied('service_account');
    const agent = await newAgent();
    await taken(agent);
    const { id } = await firstConnection();
    const put = await organisation.ask('POST', `/owner/connections/${id}/secret`, {
      secret: secretOf('service_account'),
    });
    expect(put.status, put.text).toBe(200);
    await taken(agent);
    expect(host.granted).toHaveLength(2);
  });

  test('refusals of the token endpoint are reported with what an owner can do', async () => {
    await applied('client_credentials', {}, JSON.stringify({ client_id: CLIENT_ID, client_secret: 'not the secret' }));
    const agent = await newAgent();
    const answer = await agent.act(READ);
    expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
    expect(answer.body.message).toContain(
      'The token endpoint of reports refused: invalid_client. The secret of the connection is wrong',
    );
    expect(host.calls).toEqual([]);
    const { id, state, failing } = await firstConnection();
    expect(state).toBe('reauth_needed');
    expect(failing.detail).toContain('The secret of the connection is wrong');
    const tested = await organisation.ask('POST', `/owner/connections/${id}/test`, {});
    expect(tested.body).toMatchObject({ ok: false, detail: expect.stringContaining('invalid_client') });
    const put = await organisation.ask('POST', `/owner/connections/${id}/secret`, {
      secret: secretOf('client_credentials'),
    });
    expect(put.status, put.text).toBe(200);
    expect(await firstConnection()).toMatchObject({ state: 'connected', failing: null });
    await taken(agent);
    expect((await organisation.ask('POST', `/owner/connections/${id}/test`, {})).body).toMatchObject({ ok: true });
  });

  test('a connection that gets a token again is connected, also when only an owner has tested it', async () => {
    await applied('client_credentials');
    host.instead = { status: 401, body: '{"error":"invalid_client"}' };
    expect((await (await newAgent()).act(READ)).status).toBe(409);
    expect(await firstConnection()).toMatchObject({ state: 'reauth_needed', status: 'reauth_needed' });
    host.instead = undefined;
    world.clock.skewMs += 3_000;
    const { id } = await firstConnection();
    expect((await organisation.ask('POST', `/owner/connections/${id}/test`, {})).body).toMatchObject({ ok: true });
    expect(await firstConnection()).toMatchObject({ state: 'connected', status: 'active', failing: null });
  });

  test.each(KINDS)('%s: a token endpoint that fails for a minute is shown to owners until it works', async (kind) => {
    const attention = () => attentionOf(world, organisation);
    await applied(kind);
    host.instead = { status: 500, body: 'CANARY' };
    const agent = await newAgent();
    expect((await agent.act(READ)).status).toBe(502);
    world.clock.skewMs += 59_000;
    expect((await agent.act(READ)).status).toBe(502);
    expect(await firstConnection()).toMatchObject({ state: 'connected', failing: null });
    expect(await attention()).toEqual([0]);
    world.clock.skewMs += 3_000;
    expect((await agent.act(READ)).body).toMatchObject({ code: 'token_unavailable' });
    expect(await attention()).toEqual([1]);
    const { state, failing } = await firstConnection();
    expect(state).toBe('needs_attention');
    expect(failing).toEqual({
      detail: 'The token endpoint of reports issued no token: it answered 500. Try again shortly.',
      since: expect.any(String),
    });
    expect(world.running.broker.clock() - Date.parse(failing.since)).toBeGreaterThan(61_000);
    host.instead = undefined;
    world.clock.skewMs += 3_000;
    await taken(agent);
    expect(await firstConnection()).toMatchObject({ state: 'connected', failing: null });
    expect(await attention()).toEqual([0]);
  });

  test.each([
    [
      { status: 400, body: '{"error":"invalid_scope","error_description":"<b>CANARY</b>"}' },
      409,
      'An owner corrects auth.scopes.',
    ],
    [{ status: 200, body: '{"error":"invalid_target CANARY"}' }, 502, 'it answered an error. Try again shortly.'],
    [{ status: 404, body: 'CANARY' }, 409, 'answered 404. Is auth.token_endpoint right?'],
    [{ status: 503, body: 'CANARY' }, 502, 'it answered 503. Try again shortly.'],
    [{ status: 200, body: '{"access_token":"CANARY-CANARY","token_type":"mac"}' }, 502, 'RFC 6749 section 5.1'],
    [
      { status: 200, body: '{"access_token":"CANARY\\r\\nx-evil: 1","token_type":"bearer"}' },
      502,
      'RFC 6749 section 5.1',
    ],
  ])('an invalid answer of the token endpoint: %j', async (told, status, detail) => {
    await applied('client_credentials');
    host.instead = told;
    const answer = await (await newAgent()).act(READ);
    expect([answer.status, answer.text], answer.text).toEqual([status, expect.stringContaining(detail)]);
    expect(answer.text).not.toContain('CANARY');
    expect(host.calls).toEqual([]);
  });

  test('a secret with wrong parts is refused, and nothing of it is repeated', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const ec = privateKey.export({ format: 'pem', type: 'pkcs8' });
    const account = { client_email: ACCOUNT, private_key: 'CANARY' };
    for (const [kind, secret, said] of [
      ['client_credentials', 'CANARY-CANARY', 'has several parts: write a JSON object with client_id, client_secret'],
      ['client_credentials', '{"client_id":"CANARY"}', 'has no client_secret, which is the client secret'],
      [
        'client_credentials',
        '{"client_id":"a","client_secret":""}',
        'has the part client_secret, which is empty, or no text',
      ],
      [
        'client_credentials',
        '{"client_id":"a","client_secret":"b","CANARY":"c"}',
        'has a part other than client_id, client_secret',
      ],
      ['service_account', JSON.stringify(account), 'has the part private_key, which is no private key in PEM form'],
      ['service_account', JSON.stringify({ ...account, private_key: ec }), 'is a key of type ec'],
    ] as const) {
      const answer = await apply(kind, {}, secret);
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(said)]);
      expect(answer.text).not.toContain('CANARY');
      await applied(kind);
      const body = { platform: 'reports', label: 'second', secret };
      const created = await organisation.ask('POST', '/owner/connections', body);
      expect([created.status, created.body.detail]).toEqual([400, expect.stringContaining(said)]);
      expect(created.text).not.toContain('CANARY');
    }
  });

  test('a secret stored for another auth type is not used', async () => {
    await applied('client_credentials');
    const agent = await newAgent();
    await taken(agent);
    const text = JSON.stringify({
      platforms: {
        reports: {
          kind: 'rest',
          base_url: host.url,
          auth: { type: 'service_account', scopes: ['a'], token_endpoint: `${host.url}/token` },
          scopes: { 'reports:read': ['GET /**'], 'reports:write': ['POST /**'] },
        },
      },
    });
    await expectStatus(200, organisation.ask('POST', '/owner/governance/apply', { text, values: {} }));
    expect((await agent.act(READ)).status).not.toBe(200);
    expect(host.granted).toHaveLength(1);
  });

  test('secrets and tokens are not in plain text in the store, nor in answers to owners', async () => {
    const agents = [];
    for (const kind of KINDS) {
      await applied(kind);
      agents.push(await taken(await newAgent()));
    }
    const { id } = await firstConnection();
    await organisation.ask('POST', `/owner/connections/${id}/test`, {});
    const paths = ['/owner/governance', '/owner/platforms', '/owner/connections', '/owner/audit'];
    const read = await Promise.all(paths.map((path) => organisation.ask('GET', path)));
    await world.restart();
    const stored = await everythingStored(world.environment);
    const secrets = [
      CLIENT_SECRET,
      ...host.pem.trim().split('\n').slice(1, -1),
      ...host.everIssued,
      ...host.assertions,
    ];
    expect(secrets.length).toBeGreaterThan(10);
    for (const secret of secrets) {
      expect(placesOf(secret, stored)).toEqual([]);
      for (const { text } of [...agents, ...read]) expect(text).not.toContain(secret);
    }
  });
});

describe.runIf(STORES.includes('postgres'))(`tokens without a person, and replicas${postgresNote}`, () => {
  const { host, world, apply, agent: newAgent } = givenTokenWorld('postgres');
  const replica = givenReplica(world);

  test.each(KINDS)('%s: concurrent calls on two processes make one request to the token endpoint', async (kind) => {
    expect((await apply(kind)).status).toBe(200);
    host.slowMs = 300;
    const agents = await Promise.all(Array.from({ length: 4 }, newAgent));
    const there = agents.map((agent) => replica.asks(agent));
    await Promise.all(
      [...agents, ...there].flatMap((agent) => Array.from({ length: sized(2, 5) }, () => taken(agent))),
    );
    expect(host.granted).toHaveLength(1);
  });
});
