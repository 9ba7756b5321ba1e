/** Stored tokens, and normalised token responses, checked by properties instead of examples. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { accountIn } from '../../broker/oauth-client/account.ts';
import { isOtherAccount, UNVERIFIED } from '../../broker/oauth-client/facts.ts';
import { tokenFetch } from '../../broker/oauth-client/token-fetch.ts';
import { isExpired, lifeOf, readCredential, writeCredential } from '../../broker/token-source/access-token.ts';

const RUNS = { numRuns: 300 };
const NOW = Date.UTC(2026, 5, 1);

describe('the life of a token', () => {
  test('the refresh time lies between issue and expiry; with a short or unknown lifetime a token is used until it is refused', () => {
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

  test('is never confused with a secret that an owner gave', () => {
    // No header can contain NUL, so no owner's secret does.
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(readCredential(text.replaceAll('\0', ''))).toBeUndefined();
      }),
      RUNS,
    );
  });
});

describe('the account of tokens', () => {
  const token = new Secret('a-token-0123456789');

  test.each<[string, string, string | null]>([
    ['{"login":"ann"}', '/login', 'ann'],
    ['{"user":{"a/b":"ann"}}', '/user/a~1b', 'ann'],
    ['{"login":"token a-token-0123456789"}', '/login', null],
    ['{"login":" "}', '/login', null],
    ['{"login":7}', '/login', null],
    ['{"login":"ann"}', '/login/length', null],
    ['{"login":{}}', '/login/constructor/name', null],
    ['{"login":null}', '/login/x', null],
    ['not JSON', '/login', null],
  ])('%s at %s is %s', (json, pointer, account) => expect(accountIn(json, pointer, token)).toBe(account));

  test('is another one only if both have a name, whether or not the address is verified', () => {
    expect(isOtherAccount('ann', 'bob')).toBe(true);
    for (const [before, now] of [
      ['ann', 'ann'],
      ['ann', `ann${UNVERIFIED}`],
      [`ann${UNVERIFIED}`, 'ann'],
      [null, 'ann'],
      ['ann', null],
    ] as const)
      expect(isOtherAccount(before, now), `${before}, ${now}`).toBe(false);
  });
});

describe('a token endpoint’s response', () => {
  const through = async (status: number, body: string) => {
    const fetch = tokenFetch(
      async () => new Response(body, { status, headers: { 'content-type': 'application/json' } }),
      {
        tokenType: 'bot',
        withoutIdToken: true,
      },
    );
    return await fetch('https://id.example/token', { method: 'POST', headers: {} });
  };

  test('is normalised so that each member is valid or missing, whatever the response, and the status is kept', async () => {
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
  ])('%s gets the matching status', async (body, status) => {
    expect((await through(200, body)).status).toBe(status);
  });

  test.each(['', 'not JSON', '[]', '"text"', '{"half'])('%j is passed through unchanged', async (body) => {
    expect(await (await through(200, body)).text()).toBe(body);
  });

  test('the configured token_type of a server means bearer, and no other word does', async () => {
    const typeOf = async (type: string) =>
      ((await (await through(200, JSON.stringify({ token_type: type }))).json()) as { token_type: string }).token_type;
    expect(await Promise.all(['Bot', 'Bearer', 'user'].map(typeOf))).toEqual(['bearer', 'Bearer', 'user']);
  });
});
