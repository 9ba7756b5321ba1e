import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto';
import type { Instant } from '../policy/facts.ts';

/** The public half of an ES256 key (RFC 7518 section 6.2.1). */
export type EcPublicJwk = { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string };

/** A public key as published in a key set (RFC 7517 section 4). */
export type PublishedJwk = EcPublicJwk & { readonly alg: 'ES256'; readonly use: 'sig'; readonly kid: string };

/** A key with its private half. A KeyObject reveals nothing when it is printed or serialised. */
export type SigningKey = { readonly kid: string; readonly privateKey: KeyObject; readonly publicJwk: EcPublicJwk };

/** A new key for the store: `privatePkcs8` (DER) has to be sealed, the rest is public. */
export type NewSigningKey = { readonly kid: string; readonly publicJwk: EcPublicJwk; readonly privatePkcs8: Buffer };

/**
 * One key of a set: published from the start, used for signing from `activatesAt` until a newer one is active or `retiredAt`. Without `signing` the private
 * half was deleted; the public half stays, to verify earlier signatures.
 */
export type KeySetEntry = {
  readonly kid: string;
  readonly publicJwk: EcPublicJwk;
  readonly activatesAt: Instant;
  readonly retiredAt: Instant | null;
  readonly signing?: SigningKey;
};

/** The keys for one use (evidence, issuing, root), newest first; `verifyKeys` by kid, the retired ones included. */
export type KeySet = {
  readonly entries: readonly KeySetEntry[];
  readonly verifyKeys: ReadonlyMap<string, KeyObject>;
};

/** Generates an ES256 key pair; its kid is the SHA-256 thumbprint of RFC 7638. */
export function generateSigningKey(): NewSigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicJwk = ecPublicJwk(createPublicKey(privateKey));
  return {
    kid: ecThumbprint(publicJwk),
    publicJwk,
    privatePkcs8: privateKey.export({ format: 'der', type: 'pkcs8' }),
  };
}

/**
 * Parses a stored key. Cache the result: parsing costs more than signing.
 * @throws Error when the bytes are not a P-256 private key, or not of this kid
 */
export function importSigningKey(stored: { kid: string; privatePkcs8: Uint8Array }): SigningKey {
  const { buffer, byteOffset, byteLength } = stored.privatePkcs8;
  const der = Buffer.from(buffer, byteOffset, byteLength);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const publicJwk = ecPublicJwk(createPublicKey(privateKey));
  if (ecThumbprint(publicJwk) !== stored.kid) throw new Error(`The stored signing key is not the key ${stored.kid}.`);
  return { kid: stored.kid, privateKey, publicJwk };
}

/** Makes a key set. @throws Error when a public key is not a P-256 key, or its kid is not its thumbprint */
export function keySet(entries: readonly KeySetEntry[]): KeySet {
  const verifyKeys = new Map<string, KeyObject>();
  for (const { kid, publicJwk } of entries) {
    if (ecThumbprint(publicJwk) !== kid) throw new Error(`The stored public key is not the key ${kid}.`);
    verifyKeys.set(kid, createPublicKey({ key: { ...publicJwk }, format: 'jwk' }));
  }
  const newestFirst = entries.toSorted((a, b) => b.activatesAt - a.activatesAt || (a.kid < b.kid ? -1 : 1));
  return { entries: newestFirst, verifyKeys };
}

/** Returns the key that signs at `now`: the newest that is active and not retired. Every replica picks the same key. Undefined when there is none. */
export function signingKeyAt(set: KeySet, now: Instant): SigningKey | undefined {
  for (const { activatesAt, retiredAt, signing } of set.entries) {
    if (signing !== undefined && activatesAt <= now && (retiredAt === null || now < retiredAt)) return signing;
  }
  return undefined;
}

/** Returns the key set to publish: all keys, including future and retired ones (DI-03, MR-07). */
export function publishedKeys(set: KeySet): { keys: PublishedJwk[] } {
  return {
    keys: set.entries.map(({ kid, publicJwk: { kty, crv, x, y } }) => ({
      kty,
      crv,
      x,
      y,
      alg: 'ES256',
      use: 'sig',
      kid,
    })),
  };
}

/** RFC 7638: SHA-256 over the required members in lexical order, in base64url. */
export function ecThumbprint({ crv, kty, x, y }: EcPublicJwk): string {
  return hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url');
}

function ecPublicJwk(key: KeyObject): EcPublicJwk {
  const { kty, crv, x, y } = key.export({ format: 'jwk' });
  if (kty !== 'EC' || crv !== 'P-256' || x === undefined || y === undefined) {
    throw new Error('A signing key must be an EC key on the curve P-256.');
  }
  return { kty, crv, x, y };
}
