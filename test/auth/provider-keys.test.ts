/** Published keys of an issuer: a foreign key set must not cost more than a few verifications per token. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { SignJWT } from 'jose';
import { expect, test, vi } from 'vitest';
import { providerKeys } from '../../broker/auth/provider-keys.ts';

const ISSUER = 'https://issuer.example';
const pair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

const keysOf = (keys: readonly KeyObject[]) =>
  providerKeys({
    fetchKeys: async () => ({ keys: keys.map((key) => key.export({ format: 'jwk' })) }),
    onFailure: (error) => expect.unreachable(String(error)),
    clock: Date.now,
  });

async function tokenOf(key: KeyObject): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const token = new SignJWT({ sub: 'somebody' }).setProtectedHeader({ alg: 'ES256' }).setIssuer(ISSUER);
  return await token
    .setIssuedAt(now)
    .setExpirationTime(now + 60)
    .sign(key);
}

test('a token without kid is verified with the first keys of a set only, not with thousands', async () => {
  const pairs = Array.from({ length: 200 }, pair);
  const keys = keysOf(pairs.map(({ publicKey }) => publicKey));
  const verify = vi.spyOn(crypto.subtle, 'verify');
  try {
    const verified = async (at: number) => (await keys.verify(await tokenOf(pairs[at]!.privateKey), ISSUER)).kind;
    expect([await verified(0), await verified(19)]).toEqual(['verified', 'verified']);
    verify.mockClear();
    expect(await verified(199)).toBe('refused');
    expect(verify.mock.calls.length).toBeLessThanOrEqual(20);
  } finally {
    verify.mockRestore();
  }
});
