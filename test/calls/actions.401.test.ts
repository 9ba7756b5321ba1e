import { createHmac } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { bindKey } from '../../broker/store/agent-keys.ts';
import { type Answer, expectStatus, makeKeyPair, signToken } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

describe.each(ONE_STORE)(`an invalid bearer token answers 401 on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  const other = shared(() => organisation.agent());
  beforeEach(() => world.forgive());

  const present = (authorization: string) => agent.act(READ, { authorization });
  const claims = (more: Record<string, unknown> = {}) => {
    const iat = Math.floor(agent.clock() / 1000);
    return { agent_id: agent.agentId, owner_id: agent.ownerId, iat, exp: iat + 60, ...more };
  };

  /** Expects a 401 with its challenge, no call and no row: an unauthenticated client cannot write to an organisation's audit. */
  async function refused(authorization: string, code: string): Promise<Answer> {
    const before = await listAuditRows(world.db, organisation.id, { limit: 200 });
    const answer = await withoutCalls(world, () => present(authorization));
    expectEnvelope(answer, 401, code);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    expect(answer.body).not.toHaveProperty('report_hint');
    expect(await listAuditRows(world.db, organisation.id, { limit: 200 })).toHaveLength(before.length);
    return answer;
  }

  test('a valid token is accepted (counter-example)', async () => {
    expect((await present(`Bearer ${agent.token()}`)).status).toBe(200);
    await expectStatus(200, present(`bearer ${agent.token({ sub: agent.agentId, aud: world.running.baseUrl })}`));
  });

  test('JW-18 a request without Authorization gets a challenge without an error code (RFC 6750 section 3)', async () => {
    const response = await fetch(`${world.running.baseUrl}/v1/actions`, { method: 'POST', body: JSON.stringify(READ) });
    expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([401, 'missing_token']);
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="agent-broker"');
  });

  test('JW-18 other forms of the Authorization header are refused', async () => {
    const token = agent.token();
    for (const form of [
      `Bearer  ${token}`,
      `Bearer ${token},Bearer ${token}`,
      `Basic ${btoa(`x:${token}`)}`,
      token,
      'Bearer',
    ])
      await refused(form, 'invalid_token');
  });

  test('JW-19 a token in the query or in the body is never read', async () => {
    const token = agent.token();
    const init = { method: 'POST', headers: { 'content-type': 'application/json' } };
    for (const [query, body] of [
      [`?access_token=${token}`, READ],
      ['', { ...READ, access_token: token }],
    ] as const) {
      const response = await fetch(`${world.running.baseUrl}/v1/actions${query}`, {
        ...init,
        body: JSON.stringify(body),
      });
      expect([response.status, ((await response.json()) as { error: string }).error]).toEqual([401, 'missing_token']);
    }
  });

  test.each<[string, () => string]>([
    ['JW-01 alg none', () => `${part({ alg: 'none' })}.${part(claims())}.`],
    [
      'JW-02 HS256 with the public key as secret',
      () => {
        const input = `${part({ alg: 'HS256' })}.${part(claims())}`;
        return `${input}.${createHmac('sha256', agent.keys.publicPem).update(input).digest('base64url')}`;
      },
    ],
    ['JW-03 RS512', () => agent.token({}, { alg: 'RS512' })],
    ['JW-06 a jwk in the header', () => agent.token({}, { jwk: { kty: 'RSA', n: 'x', e: 'AQAB' } })],
    ['JW-06 a jku in the header', () => agent.token({}, { jku: `http://${world.upstream.address}/jwks` })],
    ['JW-06 an x5u in the header', () => agent.token({}, { x5u: `http://${world.upstream.address}/x5u` })],
    ['JW-06 an x5c in the header', () => agent.token({}, { x5c: ['x'] })],
    ['JW-07 a kid that is a path', () => agent.token({}, { kid: '../../etc/passwd' })],
    ['JW-07 the kid of another agent', () => agent.token({}, { kid: other.agentId })],
    ['JW-08 a lifetime of 301 s', () => agent.token({ exp: claims().iat + 301 })],
    [
      'JW-09 exp 1e999',
      () =>
        `${part({ alg: 'RS256' })}.${part(JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999'))}.${part('x')}`,
    ],
    ['JW-11 iat in an hour', () => agent.token({ iat: claims().iat + 3600, exp: claims().iat + 3660 })],
    ['JW-13 iat as text', () => agent.token({ iat: 'now' })],
    ['JW-13 a fractional iat', () => agent.token({ iat: claims().iat + 0.5 })],
    ['JW-13 agent_id as an object', () => agent.token({ agent_id: { $ne: 1 } })],
    ['JW-13 agent_id as a list', () => agent.token({ agent_id: [agent.agentId] })],
    ['JW-15 another owner', () => agent.token({ owner_id: crypto.randomUUID() })],
    ['JW-16 another subject', () => agent.token({ sub: other.agentId })],
    ['another audience', () => agent.token({ aud: 'https://another.example' })],
    ['JW-20 8,193 characters', () => `${agent.token()}${'x'.repeat(8_193 - agent.token().length)}`],
    ['JW-23 an owner session', () => mintOwnerSession(world.running.broker, organisation.owner).token],
    ['the local credential', () => world.running.services.local.token.reveal()],
    ['no JWT at all', () => 'abc'],
  ])('%s', async (_name, token) => {
    await refused(`Bearer ${token()}`, 'invalid_token');
  });

  test.each(['agent_id', 'owner_id', 'iat', 'exp'])('JW-12 without %s', async (name) => {
    const answer = await refused(`Bearer ${agent.token({ [name]: undefined })}`, 'invalid_token');
    expect(answer.body.detail).toContain(name);
  });

  test('JW-08 JW-10 a token at the limit of its lifetime, or 30 s of clock skew beyond, is accepted; one later is not', async () => {
    const { iat } = claims();
    expect((await present(`Bearer ${agent.token({ exp: iat + 300 })}`)).status).toBe(200);
    expect((await present(`Bearer ${agent.token({ iat: iat - 80, exp: iat - 20 })}`)).status).toBe(200);
    const late = await refused(`Bearer ${agent.token({ iat: iat - 92, exp: iat - 32 })}`, 'token_expired');
    expect(late.body.detail).toContain('clock');
  });

  test('JW-04 a token signed with another key answers invalid_signature and counts as a strike', async () => {
    await refused(`Bearer ${signToken(claims(), other.keys.privateKey)}`, 'invalid_signature');
    const struck = await world.db.selectFrom('breakers').selectAll().execute();
    expect(struck).toMatchObject([{ agent_id: agent.id, cause: 'breaker_auth_failure', key: '127.0.0.1', strikes: 1 }]);
  });

  test('JW-01 a malformed token is no strike', async () => {
    await refused(`Bearer ${part({ alg: 'none' })}.${part(claims())}.`, 'invalid_token');
    expect(await world.db.selectFrom('breakers').selectAll().execute()).toEqual([]);
  });

  test('JW-21 a token can be used more than once', async () => {
    const authorization = `Bearer ${agent.token()}`;
    expect((await present(authorization)).status).toBe(200);
    expect((await present(authorization)).status).toBe(200);
  });

  test('JW-23 a receipt is not accepted as a bearer token', async () => {
    const { receipt } = await evidenceOf(world, agent, auditIdOf(await agent.act(READ)));
    await refused(`Bearer ${receipt}`, 'invalid_token');
  });

  test('JW-27 after a key is replaced, tokens of the old key are refused immediately', async () => {
    const rotated = await organisation.agent();
    expect((await rotated.act(READ)).status).toBe(200);
    const keys = makeKeyPair();
    const parsed = parsePublicKey(keys.publicPem);
    if (!parsed.ok) throw new Error(parsed.error);
    const { broker } = world.running;
    await bindKey(broker.store.db, { organisationId: organisation.id, id: rotated.id }, parsed, broker.clock());
    expectEnvelope(await withoutCalls(world, () => rotated.act(READ)), 401, 'invalid_signature');
    rotated.keys = keys;
    expect((await rotated.act(READ)).status).toBe(200);
  });

  test('JW-28 an unknown, a deleted and a keyless agent get exactly the answer of a wrong signature', async () => {
    const deleted = await organisation.agent({ agent: { status: 'deleted' } });
    const keyless = await organisation.agent({
      agent: { public_key_pem: null, key_fingerprint: null, status: 'pending_bind' },
    });
    const bodies = await Promise.all(
      [
        signToken(claims(), other.keys.privateKey),
        signToken(claims({ agent_id: 'agt_00000000000000000000' }), other.keys.privateKey),
        deleted.token(),
        keyless.token(),
      ].map(async (token) => {
        const answer = await expectStatus(401, present(`Bearer ${token}`));
        const { correlation_id: _id, ...rest } = answer.body;
        return { ...rest, challenge: answer.headers.get('www-authenticate') };
      }),
    );
    for (const body of bodies) expect(body).toEqual(bodies[0]);
    expect(bodies[0]!.error).toBe('invalid_signature');
  });

  test('every route for agents requires a bearer token', async () => {
    for (const path of ['/v1/agents/me', '/v1/agent/permissions', `/v1/audit/${crypto.randomUUID()}/receipt`]) {
      const response = await fetch(world.running.baseUrl + path);
      expect([path, response.status, ((await response.json()) as { error: string }).error]).toEqual([
        path,
        401,
        'missing_token',
      ]);
      expectEnvelope(await agent.get(path, { authorization: 'Bearer x.y.z' }), 401, 'invalid_token');
    }
  });
});
