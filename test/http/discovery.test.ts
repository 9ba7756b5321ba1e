import { createLocalJWKSet, jwtVerify, SignJWT } from 'jose';
import { describe, expect, test } from 'vitest';
import { expectStatus, send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`public documents on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const get = (path: string, init: RequestInit = {}) => send(world.running.baseUrl + path, init);

  test('/health follows the availability of the store', async () => {
    const answer = await get('/health');
    expect([answer.status, answer.body]).toEqual([200, { status: 'ok' }]);
    const head = await get('/health', { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
  });

  test('/version returns the build and is never cached', async () => {
    const { status, headers, body } = await get('/version');
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body).toEqual({
      service: 'proxy',
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      sha: expect.any(String),
      builtAt: body.builtAt === null ? null : expect.stringMatching(/^\d{4}-.*Z$/),
    });
  });

  test.each([
    ['/.well-known/svc-receipt-keys.json', 'evidence', 'public, max-age=3600'],
    ['/v1/oauth/jwks.json', 'issuing', 'public, max-age=300'],
  ] as const)('%s is a set of public ES256 keys', async (path, use, caching) => {
    const { headers, body } = await expectStatus(200, get(path));
    expect(headers.get('cache-control')).toBe(caching);
    expect(headers.get('access-control-allow-origin')).toBe('*');
    expect(headers.get('content-type')).toMatch(/^application\/json/);
    expect(Object.keys(body)).toEqual(['keys']);
    expect(body.keys.length).toBeGreaterThan(0);
    for (const key of body.keys) {
      expect(key).toMatchObject({ kty: 'EC', crv: 'P-256', kid: expect.any(String) });
      expect(key).not.toHaveProperty('d');
    }
    // It contains the signing key: a signature can be verified with the set alone.
    const { broker } = world.running;
    const signer = broker.keys.signer(use, broker.clock());
    const jwt = await new SignJWT({ a: 1 })
      .setProtectedHeader({ alg: 'ES256', kid: signer.kid })
      .sign(signer.privateKey);
    expect((await jwtVerify(jwt, createLocalJWKSet(body))).payload.a).toBe(1);
  });

  test('no two key uses share a key', async () => {
    const kids = (
      await Promise.all(['/.well-known/svc-receipt-keys.json', '/v1/oauth/jwks.json'].map((path) => get(path)))
    ).map(({ body }) => body.keys.map((key: { kid: string }) => key.kid));
    expect(new Set(kids.flat()).size).toBe(kids.flat().length);
  });

  test('an unknown address is a 404 in the envelope, and another method a 405 that names the allowed ones', async () => {
    expectEnvelope(await get('/v1/nothing'), 404, 'not_found');
    const answer = await get('/health', { method: 'POST' });
    expectEnvelope(answer, 405, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe('GET, HEAD');
    expect((await get('/v1/actions')).headers.get('allow')).toBe('POST');
  });

  test('answers have no X-Powered-By or Server header', async () => {
    for (const path of ['/health', '/nothing', '/v1/agents/me']) {
      const { headers } = await get(path);
      expect(headers.get('x-powered-by')).toBeNull();
      expect(headers.get('server')).toBeNull();
    }
  });
});
