import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto';
import type { Instant } from '../policy/facts.ts';

/** The public half of an ES256 key (RFC 7518 section 6.2.1). */
export type EcPublicJwk = { readonly kty: 'EC'; readonly crv: 'P-256'; readonly x: string; readonly y: string };

/** As it stands in a published key set (RFC 7517 section 4). */
export type PublishedJwk = EcPublicJwk & { readonly alg: 'ES256'; readonly use: 'sig'; readonly kid: string };

/** A key that can sign now. The KeyObject shows nothing of the key when it is printed or serialised. */
export type SigningKey = { readonly kid: string; readonly privateKey: KeyObject; readonly publicJwk: EcPublicJwk };

/** A new key as it goes to the store: `privatePkcs8` (DER) is to be sealed, the rest is public. */
export type NewSigningKey = { readonly kid: string; readonly publicJwk: EcPublicJwk; readonly privatePkcs8: Buffer };

/**
 * One key of a set: published from the start, signing from `activatesAt` until a newer one does or `retiredAt` comes.
 * Without `signing` the private half is gone; the public half stays, for what it once signed.
 */
export type KeySetEntry = {
  readonly kid: string;
  readonly publicJwk: EcPublicJwk;
  readonly activatesAt: Instant;
  readonly retiredAt: Instant | null;
  readonly signing?: SigningKey;
};

/** The keys of one job (evidence, issuing, root), newest first; `verifyKeys` by kid, the retired ones included. */
export type KeySet = {
  readonly entries: readonly KeySetEntry[];
  readonly verifyKeys: ReadonlyMap<string, KeyObject>;
};

/** Makes an ES256 key pair; its kid is the SHA-256 thumbprint of RFC 7638. */
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
 * Reads a stored key, once: parsing costs more than signing.
 * @throws Error when the bytes are no P-256 private key or belong to another kid
 */
export function importSigningKey(stored: { kid: string; privatePkcs8: Uint8Array }): SigningKey {
  const { buffer, byteOffset, byteLength } = stored.privatePkcs8;
  const der = Buffer.from(buffer, byteOffset, byteLength);
  const privateKey = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const publicJwk = ecPublicJwk(createPublicKey(privateKey));
  if (ecThumbprint(publicJwk) !== stored.kid) throw new Error(`The stored signing key is not the key ${stored.kid}.`);
  return { kid: stored.kid, privateKey, publicJwk };
}

/** Puts keys together. @throws Error when a public key is no P-256 key, or its kid is not its thumbprint */
export function keySet(entries: readonly KeySetEntry[]): KeySet {
  const verifyKeys = new Map<string, KeyObject>();
  for (const { kid, publicJwk } of entries) {
    if (ecThumbprint(publicJwk) !== kid) throw new Error(`The stored public key is not the key ${kid}.`);
    verifyKeys.set(kid, createPublicKey({ key: { ...publicJwk }, format: 'jwk' }));
  }
  const newestFirst = entries.toSorted((a, b) => b.activatesAt - a.activatesAt || (a.kid < b.kid ? -1 : 1));
  return { entries: newestFirst, verifyKeys };
}

/** The key that signs at `now`: the newest that is active and not retired. Every replica picks the same one. */
export function signingKeyAt(set: KeySet, now: Instant): SigningKey | undefined {
  for (const { activatesAt, retiredAt, signing } of set.entries) {
    if (signing !== undefined && activatesAt <= now && (retiredAt === null || now < retiredAt)) return signing;
  }
  return undefined;
}

/** The key set to publish: all keys, also those yet to be used and those retired (DI-03, MR-07). */
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
