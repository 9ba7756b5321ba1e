/** Tokens of the identity provider as the bearer of the owner API (specification, Authentication 5). */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startIdentityProvider } from '../world/servers/identity-provider.ts';
import { CLIENT_ID, type LyingProvider, makeSigner, startLyingProvider } from '../world/servers/lying-provider.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { givenWorld, shared, startWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`tokens of the identity provider on %s${postgresNote}`, (store) => {
  let ann: { id: string; sub: string; email: string };
  const provider = shared(() => startLyingProvider());
  const world = givenWorld(store, () => provider.settings);
  const organisation = shared(() => world.organisation());
  const agent = shared(() => organisation.agent({ grants: {} }));
  beforeEach(async () => {
    provider.beHonest();
    ann = await invited('approver');
  });

  const invited = async (
    role: OwnerTable['role'],
    where = organisation,
    email = `p-${crypto.randomUUID()}@acme.example`,
  ) => {
    const { body } = await where.ask('POST', '/owner/owners', { email, role });
    return { id: body.id as string, sub: `sub-${crypto.randomUUID()}`, email };
  };
  const ask = (token: string, path = '/owner/me', init: RequestInit = {}): Promise<Answer> =>
    send(world.running.baseUrl + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
  /** Returns claims of an ID token of Ann's with her verified address. */
  const verified = (different: Record<string, unknown> = {}) =>
    provider.honest({ sub: ann.sub, email: ann.email.toUpperCase(), email_verified: true, ...different });
  const stored = async (id: string) =>
    (await world.db.selectFrom('owners').selectAll().where('id', '=', id).executeTakeFirst())!;
  const keyRequests = () => provider.seen.filter((line) => line.endsWith('/jwks')).length;

  test('an ID token with the verified address of an invited owner is accepted; from then on the account identifies them', async () => {
    const first = await ask(await provider.sign(verified()));
    expect(first.body).toMatchObject({ id: ann.id, email: ann.email, role: 'approver', sign_in: 'oidc' });
    expect((await stored(ann.id)).oidc_subject).toBe(`${provider.issuer} ${ann.sub}`);
    expect((await ask(await provider.sign(provider.honest({ sub: ann.sub })))).body.id).toBe(ann.id);
    // Another account with the same address is refused.
    const next = await ask(await provider.sign(verified({ sub: 'somebody-else' })));
    expectEnvelope(next, 401, 'invalid_token');
    expect(next.body.detail).toContain('is not an owner here');
  });

  test('a JWT access token for this broker’s address is accepted', async () => {
    await ask(await provider.sign(verified()));
    for (const different of [
      { aud: world.running.baseUrl, client_id: 'a-script' },
      { aud: [world.running.baseUrl, 'https://id.example/userinfo'], azp: 'a-script' },
    ])
      for (const typ of ['at+jwt', 'application/at+jwt', 'JWT', undefined]) {
        const claims = provider.honest({ sub: ann.sub, ...different });
        expect((await ask(await provider.sign(claims, typ === undefined ? {} : { typ }))).status).toBe(200);
      }
  });

  test('the role is the owner’s current one in the store; roles in the token are ignored', async () => {
    const token = await provider.sign(verified({ role: 'admin', org: crypto.randomUUID(), roles: ['admin'] }));
    expect((await ask(token)).body).toMatchObject({ role: 'approver', organisation: { id: organisation.id } });
    const post = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } };
    expectEnvelope(await ask(token, `/owner/agents/${agent.id}/suspend`, post), 403, 'forbidden');
    await organisation.ask('POST', '/owner/owners', { email: ann.email, role: 'viewer' });
    expect((await ask(token)).body.role).toBe('viewer');
    await organisation.ask('DELETE', `/owner/owners/${ann.id}`);
    expectEnvelope(await ask(token), 401, 'invalid_token');
  });

  test.each<[string, Record<string, unknown>]>([
    ['an address that is not verified', { email_verified: false }],
    ['an address of which nothing is said', { email_verified: undefined }],
    ['no address, and an account that nobody knows', { email: undefined }],
    ['the address of nobody', { email: 'nobody@acme.example' }],
    ['an address that is no text', { email: { $ne: '' } }],
    ['no subject', { sub: undefined }],
    ['an empty subject', { sub: '' }],
    ['a subject that is no text', { sub: 7 }],
    ['a subject with a control character', { sub: 'ann\u0000' }],
    ['the audience of another app of the provider', { aud: 'another-app' }],
    ['no audience', { aud: undefined }],
    ['another audience beside ours', { aud: [CLIENT_ID, 'another-app'] }],
    ['another authorized party', { azp: 'another-app' }],
    ['an audience that begins like ours', { aud: `${CLIENT_ID}-2` }],
    ['an address for an audience that begins like ours', { aud: 'http://localhost' }],
    ['an issuer with a slash', { iss: 'SLASH' }],
    ['another issuer', { iss: 'https://evil.test' }],
    ['a time of the future', { iat: Math.floor(Date.now() / 1000) + 3600, exp: Math.floor(Date.now() / 1000) + 7200 }],
    ['a time that is no number', { iat: 'now' }],
    ['no time', { iat: undefined }],
    ['no end', { exp: undefined }],
    ['an end that is no number', { exp: '9999999999' }],
    ['a beginning in the future', { nbf: Math.floor(Date.now() / 1000) + 3600 }],
    ['news of a sign-out', { events: {} }],
  ])('JW-29 a token with %s is refused', async (_name, different) => {
    if (different.iss === 'SLASH') different.iss = `${provider.issuer}/`;
    expectEnvelope(await ask(await provider.sign(verified(different))), 401, 'invalid_token');
    expect((await stored(ann.id)).oidc_subject).toBeNull();
  });

  type Make = (one: LyingProvider, claims: Record<string, unknown>) => Promise<string> | string;

  test.each<[string, Make]>([
    ['of the type of our sessions', (one, claims) => one.sign(claims, { typ: 'svc-owner+jwt' })],
    ['of the type of a receipt', (one, claims) => one.sign(claims, { typ: 'svc-receipt+jwt' })],
    ['of the type of a sign-out', (one, claims) => one.sign(claims, { typ: 'logout+jwt' })],
    ['of a type that is no text', (one, claims) => one.sign(claims, { typ: 1 as never })],
    [
      'RS512',
      async (one, claims) =>
        one.sign(claims, { alg: 'RS512' }, { ...(await makeSigner('RS512')), kid: one.signer.kid }),
    ],
    [
      'without a signature',
      (_, claims) =>
        `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`,
    ],
  ])('JW-29 a token %s is refused', async (_name, make) => {
    expectEnvelope(await ask(await make(provider, verified())), 401, 'invalid_token');
    expect((await stored(ann.id)).oidc_subject).toBeNull();
  });

  test.each<[string, Make]>([
    [
      'by another key of the same name',
      async (one, claims) => one.sign(claims, {}, { ...(await makeSigner()), kid: one.signer.kid }),
    ],
    ['with the signature cut', async (one, claims) => (await one.sign(claims)).slice(0, -20)],
    [
      'with other claims under the same signature',
      async (one, claims) => {
        const [header, , signature] = (await one.sign({ ...claims, sub: 'x' })).split('.');
        return `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`;
      },
    ],
  ])('JW-29 a token %s is refused for its signature, at every route', async (_name, make) => {
    const token = await make(provider, verified());
    for (const path of ['/owner/me', `/v1/audit/${crypto.randomUUID()}/receipt`]) {
      const answer = await ask(token, path);
      expectEnvelope(answer, 401, 'invalid_signature');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    }
    // AuthZEN and TRQP accept owners and agents: the refusal of a provider's token does not mention claims of agent tokens.
    const headers = { 'content-type': 'application/json' };
    for (const path of ['/v1/authzen/access', '/v1/trqp/authorization']) {
      const answer = await expectStatus(401, ask(token, path, { method: 'POST', headers, body: '{}' }));
      expect(answer.text).toContain('invalid_signature');
      expect(answer.text).not.toContain('agent_id');
    }
    expect((await stored(ann.id)).oidc_subject).toBeNull();
  });

  test('a token is refused after its exp, and after 12 hours', async () => {
    const now = Math.floor(Date.now() / 1000);
    const over = await provider.sign(verified({ iat: now - 600, exp: now - 60 }));
    expectEnvelope(await ask(over), 401, 'token_expired');
    const long = await provider.sign(verified({ iat: now, exp: now + 10 * 24 * 3600 }));
    const { body } = await ask(long);
    expect(Date.parse(body.session_expires_at)).toBe((now + 12 * 3600) * 1000);
    world.clock.skewMs = 12 * 60 * MINUTE_MS + 1_000;
    expectEnvelope(await ask(long), 401, 'token_expired');
  });

  test('a token that was signed out here is refused, however its signature is encoded, and another token is not', async () => {
    const token = await provider.sign(verified());
    const another = await provider.sign(verified({ jti: 'another' }));
    expect((await ask(token, '/owner/sign-out', { method: 'POST' })).status).toBe(200);
    expectEnvelope(await ask(token), 401, 'token_expired');
    // The last bits of base64url are unused, so this encodes the same signature.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const twin = token.slice(0, -1) + alphabet[alphabet.indexOf(token.at(-1)!) ^ 1];
    expect((await ask(twin)).status).toBe(401);
    expect((await ask(another)).status).toBe(200);
  });

  test('JW-23 a provider’s token is not accepted as an agent’s, and an agent’s token or our session not as the provider’s', async () => {
    const token = await provider.sign(verified());
    const withToken = await ask(token, '/v1/agents/me');
    expectEnvelope(withToken, 401, 'invalid_token');
    expect(withToken.body.detail).toMatch(/^The token has no claim agent_id, .* not that of an agent's workload/);
    const claims = { agent_id: agent.agentId, owner_id: agent.ownerId };
    const both = await provider.sign(verified(claims));
    expect((await ask(both, '/v1/agents/me')).status).toBe(401);
    // Signed by the agent, with the claims of an owner's token.
    const forged = agent.token(verified());
    expectEnvelope(await ask(forged), 401, 'invalid_signature');
    // A session of the broker itself is accepted, but not as an agent's token.
    const session = mintOwnerSession(world.running.broker, organisation.owner).token;
    expect((await ask(session)).status).toBe(200);
    const withSession = await ask(session, '/v1/agents/me');
    expectEnvelope(withSession, 401, 'invalid_token');
    expect(withSession.body.detail).toMatch(/^This is the session of an owner, which is not accepted here\./);
    // Routes for agents and owners accept each as what it is.
    const receipt = `/v1/audit/${crypto.randomUUID()}/receipt`;
    expectEnvelope(await ask(token, receipt), 404, 'not_found');
    expectEnvelope(await ask(agent.token(), receipt), 404, 'not_found');
    expectEnvelope(await ask(forged, receipt), 401, 'invalid_signature');
  });

  test('a route for agents and owners authenticates a token only as the kind that it claims to be', async () => {
    const { services } = world.running;
    const [asOwner, withSession] = [vi.spyOn(services, 'authenticateOwner'), vi.spyOn(services, 'authenticateAgent')];
    const receipt = `/v1/audit/${crypto.randomUUID()}/receipt`;
    expectEnvelope(await ask(agent.token(), receipt), 404, 'not_found');
    expect([asOwner.mock.calls.length, withSession.mock.calls.length]).toEqual([0, 1]);
    const session = mintOwnerSession(world.running.broker, organisation.owner).token;
    expectEnvelope(await ask(session, receipt), 404, 'not_found');
    expectEnvelope(await ask(await provider.sign(verified()), receipt), 404, 'not_found');
    expectEnvelope(await ask(`${session.slice(0, -8)}AAAAAAAA`, receipt), 401, 'invalid_signature');
    expect([asOwner.mock.calls.length, withSession.mock.calls.length]).toEqual([3, 1]);
    expect((await ask('x', receipt)).status).toBe(401);
    vi.restoreAllMocks();
  });

  test('many made-up key ids cause one request for the provider’s keys in 30 seconds', async () => {
    await ask(await provider.sign(verified()));
    const forged = await Promise.all(
      Array.from({ length: 200 }, async (_, n) =>
        provider.sign(verified(), {}, { ...provider.signer, kid: `made-up-${n}` }),
      ),
    );
    for (const seconds of [31, 62]) {
      world.clock.skewMs = seconds * 1000;
      const before = keyRequests();
      const answers = await Promise.all(forged.map((token) => ask(token)));
      for (const answer of answers) expectEnvelope(answer, 401, 'invalid_token');
      expect(keyRequests()).toBe(before + 1);
    }
  });

  test('a new key of the provider is fetched by the first request that uses it', async () => {
    await ask(await provider.sign(verified()));
    const old = provider.signer;
    const fresh = await makeSigner();
    provider.keys = [fresh.publicJwk];
    provider.signer = fresh;
    world.clock.skewMs = 3 * MINUTE_MS;
    const before = keyRequests();
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
    expect(keyRequests()).toBe(before + 1);
    // The old key is no longer published.
    expectEnvelope(await ask(await provider.sign(verified(), {}, old)), 401, 'invalid_token');
  });

  test('a key that the provider withdrew is refused by the first request after 5 minutes', async () => {
    world.clock.skewMs = 12 * 60 * MINUTE_MS;
    provider.clock = () => Date.now() + world.clock.skewMs;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
    const withdrawn = provider.signer;
    const fresh = await makeSigner();
    provider.keys = [fresh.publicJwk];
    provider.signer = fresh;
    const before = keyRequests();
    world.clock.skewMs += 5 * MINUTE_MS + 1_000;
    const stolen = await provider.sign(verified(), {}, withdrawn);
    const answers = await Promise.all([ask(stolen), ask(stolen)]);
    for (const answer of answers) expectEnvelope(answer, 401, 'invalid_token');
    expect(keyRequests()).toBe(before + 1);
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
  });

  test('with an unavailable provider keys stay valid for 5 minutes after they were fetched, then no token is accepted', async () => {
    world.clock.skewMs = 24 * 60 * MINUTE_MS;
    provider.clock = () => Date.now() + world.clock.skewMs;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
    provider.answers.set('/jwks', (_, response) => response.destroy());
    world.clock.skewMs += 4 * MINUTE_MS + 50_000;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
    world.clock.skewMs += 31_000;
    expectEnvelope(await ask(await provider.sign(verified())), 502, 'identity_provider_failed');
    provider.beHonest();
    provider.clock = () => Date.now() + world.clock.skewMs;
    world.clock.skewMs += 31_000;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
  });

  test('keys in use are refreshed every minute in the background, which bridges an outage of some minutes', async () => {
    world.clock.skewMs = 48 * 60 * MINUTE_MS;
    provider.clock = () => Date.now() + world.clock.skewMs;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
    const before = keyRequests();
    world.clock.skewMs += 4 * MINUTE_MS;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
    await vi.waitUntil(() => keyRequests() === before + 1);
    provider.answers.set('/jwks', (_, response) => response.destroy());
    world.clock.skewMs += 4 * MINUTE_MS;
    expect((await ask(await provider.sign(verified()))).status).toBe(200);
  });

  test('a person in two organisations is authenticated as the owner in the older one', async () => {
    const younger = await world.organisation();
    const other = await invited('admin', younger, ann.email);
    expect((await ask(await provider.sign(verified()))).body).toMatchObject({
      id: ann.id,
      organisations: [{ id: younger.id }],
    });
    expect((await stored(other.id)).oidc_subject).toBeNull();
  });

  test('an invitation by an older organisation does not redirect the programs of a person who has signed in elsewhere', async () => {
    const younger = await world.organisation();
    const there = await invited('admin', younger);
    const token = await provider.sign(provider.honest({ sub: there.sub, email: there.email, email_verified: true }));
    expect((await ask(token)).body.id).toBe(there.id);
    const baited = await invited('admin', organisation, there.email);
    expect((await ask(token)).body).toMatchObject({ id: there.id, organisations: [{ id: organisation.id }] });
    const connection = { method: 'POST', headers: { 'content-type': 'application/json' } };
    await expectStatus(201, ask(token, '/owner/policies', { ...connection, body: '{"name":"theirs","rules":[]}' }));
    expect((await younger.ask('GET', '/owner/policies/theirs')).status).toBe(200);
    expect((await stored(baited.id)).oidc_subject).toBeNull();
  });
});

describe('without keys', () => {
  test('JW-29 with a provider that was never reachable: 502, one request for keys in 30 seconds, and nobody is authenticated', async () => {
    const provider = await startLyingProvider();
    provider.answers.set('/.well-known/openid-configuration', (_, response) => response.destroy());
    const world = await startWorld('sqlite', provider.settings);
    const organisation = await world.organisation();
    const ask = (token: string) =>
      send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
    await organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role: 'viewer' });
    const token = await provider.sign(provider.honest({ email: 'ann@acme.example', email_verified: true }));
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(token)));
    for (const answer of answers) {
      expectEnvelope(answer, 502, 'identity_provider_failed');
      expect(answer.headers.get('retry-after')).toBe('30');
    }
    expect(provider.seen).toHaveLength(1);
    // Sessions of the broker itself do not depend on the provider.
    expect((await organisation.ask('GET', '/owner/me')).status).toBe(200);
    provider.beHonest();
    expect((await ask(token)).status).toBe(502);
    world.clock.skewMs = 31_000;
    expect((await ask(token)).status).toBe(200);
    // The provider is unavailable again: the cached keys stay in use.
    provider.answers.set('/jwks', (_, response) => response.destroy());
    world.clock.skewMs = 4 * MINUTE_MS;
    provider.clock = () => Date.now() + world.clock.skewMs;
    const later = await provider.sign(provider.honest({ email: 'ann@acme.example', email_verified: true }));
    expect((await ask(later)).status).toBe(200);
  });

  test('without a configured provider its tokens are refused', async () => {
    const provider = await startLyingProvider();
    const world = await startWorld('sqlite', { AGENT_BROKER_DATA: newFolder() });
    const organisation = await world.organisation();
    await organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role: 'viewer' });
    const token = await provider.sign(provider.honest({ email: 'ann@acme.example', email_verified: true }));
    const answer = await send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
    expectEnvelope(answer, 401, 'invalid_token');
    for (const path of ['/console/oidc/start', '/console/oidc/callback'])
      expectEnvelope(await send(world.running.baseUrl + path, {}), 404, 'not_found');
    expect(provider.seen).toEqual([]);
  });
});

test('an ID token that a script gets from a real provider is accepted', async () => {
  const provider = await startIdentityProvider({ secret: false });
  const world = await startWorld('sqlite', provider.settings);
  await provider.serve(world.running.baseUrl, { claimsInToken: true });
  provider.people.set('ann', { email: 'ann@acme.example', email_verified: true });
  const organisation = await world.organisation();
  await organisation.ask('POST', '/owner/owners', { email: 'ann@acme.example', role: 'viewer' });
  const redirect = `${world.running.baseUrl}/console/oidc/callback`;
  const verifier = 'v'.repeat(64);
  const challenge = Buffer.from(await crypto.subtle.digest('SHA-256', Buffer.from(verifier))).toString('base64url');
  const query = new URLSearchParams({
    client_id: CLIENT_ID,
    response_type: 'code',
    redirect_uri: redirect,
    scope: 'openid email',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  const browser = new Browser();
  browser.stopAt = (url) => url.href.startsWith(redirect);
  const { url } = await provider.signIn(browser, 'ann', `${provider.issuer}/auth?${query}`);
  const answer = await fetch(`${provider.issuer}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      code: new URL(url).searchParams.get('code')!,
      redirect_uri: redirect,
      code_verifier: verifier,
    }),
  });
  const { id_token: token } = (await answer.json()) as { id_token: string };
  const me = await send(`${world.running.baseUrl}/owner/me`, { headers: { authorization: `Bearer ${token}` } });
  expect(me.body).toMatchObject({ email: 'ann@acme.example', sign_in: 'oidc' });
});
