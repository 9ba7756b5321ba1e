/** What is stored of a token, and what is made of whatever token endpoints answer: for all of it, not for examples. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { tokenFetch } from '../../broker/oauth-client/token-fetch.ts';
import { isExpired, lifeOf, readCredential, writeCredential } from '../../broker/token-source/access-token.ts';

const RUNS = { numRuns: 300 };
const NOW = Date.UTC(2026, 5, 1);

describe('the life of a token', () => {
  test('is refreshed after it came and before it ends; what is too short or unknown is used until it is refused', () => {
    fc.assert(
      fc.property(fc.option(fc.double({ min: 0, noNaN: true }), { nil: undefined }), (seconds) => {
        const { issuedAt, refreshAt, expiresAt } = lifeOf(seconds, NOW);
        expect(issuedAt).toBe(NOW);
        expect(refreshAt === null).toBe(expiresAt === null);
        if (refreshAt === null || expiresAt === null) {
          expect(seconds ?? 0).toBeLessThan(3);
          return;
        }
        expect(refreshAt).toBeGreaterThan(NOW);
        expect(expiresAt).toBeGreaterThan(refreshAt);
        expect(expiresAt - refreshAt).toBeLessThanOrEqual(5 * 60_000);
        expect(Number.isSafeInteger(expiresAt)).toBe(true);
      }),
      RUNS,
    );
  });
});

describe('a stored token', () => {
  const credential = fc.record({
    token: fc.string({ unit: 'binary' }),
    id: fc.uuid(),
    issuedAt: fc.nat(),
    refreshAt: fc.option(fc.nat()),
    expiresAt: fc.option(fc.nat()),
    refreshable: fc.boolean(),
    lapsed: fc.boolean(),
  });

  test('is read as it was written', () => {
    fc.assert(
      fc.property(credential, ({ token, ...facts }) => {
        const { token: read, ...rest } = readCredential(writeCredential({ token: new Secret(token), ...facts }))!;
        expect([read.reveal(), rest]).toEqual([token, facts]);
        expect(isExpired({ token: read, ...rest }, NOW)).toBe(facts.expiresAt !== null && facts.expiresAt <= NOW);
      }),
      RUNS,
    );
  });

  test('is never mistaken for a secret that an owner gave, nor such a secret for one', () => {
    // No header carries a NUL, so no owner's secret has one.
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(readCredential(text.replaceAll('\0', ''))).toBeUndefined();
      }),
      RUNS,
    );
  });
});

describe('a token endpoint’s answer', () => {
  const through = async (status: number, body: string, type = 'application/json') => {
    const fetch = tokenFetch(async () => new Response(body, { status, headers: { 'content-type': type } }), {
      tokenType: 'bot',
      withoutIdToken: true,
    });
    return await fetch('https://id.example/token', { method: 'POST', headers: {} });
  };

  test('whatever it is, becomes one in which each member is what it should be, or missing, and the status stays', async () => {
    const member = fc.oneof(
      fc.string(),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.array(fc.string()),
      fc.object(),
    );
    const body = fc.record(
      {
        access_token: member,
        token_type: member,
        expires_in: member,
        refresh_token: member,
        scope: member,
        id_token: member,
        ok: member,
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(body, async (given) => {
        const answer = await through(200, JSON.stringify(given));
        const tidy = (await answer.json()) as Record<string, unknown>;
        expect(answer.status).toBe(200);
        if ('expires_in' in tidy) expect(tidy.expires_in).toBeGreaterThan(0);
        if ('refresh_token' in tidy) expect(tidy.refresh_token).toMatch(/[\s\S]/);
        if ('scope' in tidy) expect(tidy.scope).not.toMatch(/^ |,| {2}| $/);
        expect('id_token' in tidy).toBe(false);
      }),
      RUNS,
    );
  });

  test.each([
    ['{"error":"bad_verification_code"}', 400],
    ['{"ok":false,"error":"invalid_code"}', 400],
    ['{"access_token":"a","error":"none"}', 200],
  ])('%s has the status that it means', async (body, status) => {
    expect((await through(200, body)).status).toBe(status);
  });

  test.each(['', 'not JSON', '[]', '"text"', '{"half'])('%j comes through as it is', async (body) => {
    expect(await (await through(200, body)).text()).toBe(body);
  });

  test('a word of its own for a bearer token counts as one, and no other word', async () => {
    const typeOf = async (type: string) =>
      ((await (await through(200, JSON.stringify({ token_type: type }))).json()) as { token_type: string }).token_type;
    expect(await Promise.all(['Bot', 'Bearer', 'user'].map(typeOf))).toEqual(['bearer', 'Bearer', 'user']);
  });
});
