import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { inspect } from 'node:util';
import { calculateJwkThumbprint, createLocalJWKSet, jwtVerify } from 'jose';
import { describe, expect, it } from 'vitest';
import { signCompact } from '../../broker/crypto/jws.ts';
import {
  generateSigningKey,
  importSigningKey,
  type KeySetEntry,
  keySet,
  publishedKeys,
  signingKeyAt,
} from '../../broker/crypto/key-set.ts';

function entry(times: { activatesAt: number; retiredAt?: number }, withPrivate = true): KeySetEntry {
  const made = generateSigningKey();
  return {
    kid: made.kid,
    publicJwk: made.publicJwk,
    activatesAt: times.activatesAt,
    retiredAt: times.retiredAt ?? null,
    ...(withPrivate && { signing: importSigningKey(made) }),
  };
}

describe('a signing key', () => {
  it('has its RFC 7638 thumbprint as kid, as jose computes it', async () => {
    const { kid, publicJwk } = generateSigningKey();
    expect(kid).toBe(await calculateJwkThumbprint({ ...publicJwk }, 'sha256'));
  });

  it('is the same after storing and loading', () => {
    const made = generateSigningKey();
    const key = importSigningKey({ kid: made.kid, privatePkcs8: new Uint8Array(made.privatePkcs8) });
    expect(key.publicJwk).toEqual(made.publicJwk);
    expect(key.kid).toBe(made.kid);
  });

  it('does not reveal its private half when it is printed', () => {
    const made = generateSigningKey();
    const { d } = createPrivateKey({ key: made.privatePkcs8, format: 'der', type: 'pkcs8' }).export({ format: 'jwk' });
    const key = importSigningKey(made);
    expect(inspect(key, { depth: 9, showHidden: true }) + JSON.stringify(key)).not.toContain(d);
  });

  it('is refused with another kid, and on another curve', () => {
    const made = generateSigningKey();
    expect(() => importSigningKey({ ...made, kid: generateSigningKey().kid })).toThrow('is not the key');
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
    const privatePkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
    expect(() => importSigningKey({ kid: made.kid, privatePkcs8 })).toThrow('P-256');
  });
});

describe('a key set', () => {
  const retired = entry({ activatesAt: 100, retiredAt: 250 }, false);
  const current = entry({ activatesAt: 200 });
  const next = entry({ activatesAt: 300 });
  const set = keySet([current, next, retired]);

  it('signs with the newest active key', () => {
    expect(signingKeyAt(set, 199)).toBeUndefined();
    expect(signingKeyAt(set, 200)?.kid).toBe(current.kid);
    expect(signingKeyAt(set, 299)?.kid).toBe(current.kid);
    expect(signingKeyAt(set, 300)?.kid).toBe(next.kid);
  });

  it('does not sign with a retired key', () => {
    const only = keySet([entry({ activatesAt: 100, retiredAt: 200 })]);
    expect(signingKeyAt(only, 199)).toBeDefined();
    expect(signingKeyAt(only, 200)).toBeUndefined();
  });

  it('picks the same of two equally old keys in any order', () => {
    const [one, other] = [entry({ activatesAt: 1 }), entry({ activatesAt: 1 })];
    expect(signingKeyAt(keySet([one, other]), 1)!.kid).toBe(signingKeyAt(keySet([other, one]), 1)!.kid);
  });

  it('DI-03 MR-07 publishes keys before their first use and after their last', () => {
    const { keys } = publishedKeys(set);
    expect(keys.map(({ kid }) => kid)).toEqual([next.kid, current.kid, retired.kid]);
    for (const jwk of keys) {
      expect(Object.keys(jwk).toSorted()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
      expect(jwk).toMatchObject({ alg: 'ES256', use: 'sig', kty: 'EC', crv: 'P-256' });
    }
    expect(new Set(set.verifyKeys.keys())).toEqual(new Set(keys.map(({ kid }) => kid)));
  });

  it('is accepted by jose as a key set', async () => {
    const jws = signCompact(current.signing!, { typ: 'svc-receipt+jwt' }, { jti: 'x' });
    const verified = await jwtVerify(jws, createLocalJWKSet(publishedKeys(set)), { algorithms: ['ES256'] });
    expect(verified.payload).toEqual({ jti: 'x' });
    expect(verified.protectedHeader.kid).toBe(current.kid);
  });

  it('refuses a public key with another kid', () => {
    expect(() => keySet([{ ...current, kid: next.kid }])).toThrow('is not the key');
  });

  it('has public keys for verifying', () => {
    expect(set.verifyKeys.get(current.kid)!.type).toBe('public');
    expect(set.verifyKeys.get(current.kid)!.equals(createPublicKey(current.signing!.privateKey))).toBe(true);
  });
});
