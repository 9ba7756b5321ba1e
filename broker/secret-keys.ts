/**
 * The broker's encryption keys for secrets that clients send sealed: one key in a key set of its own. No process caches it, so that a rotation is in
 * force on every replica immediately.
 */

import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { Broker } from './broker.ts';
import { generateSigningKey, importSigningKey } from './crypto/key-set.ts';
import { publishedSealingKey } from './crypto/sealed-secret.ts';
import type { Instant } from './policy/facts.ts';
import { present } from './runtime/present.ts';
import { WHOLE_BROKER } from './store/sealed.ts';
import {
  destroyReplacedSecretKeys,
  findSecretKey,
  findSecretKeyInForce,
  putFirstSecretKey,
  replaceSecretKey,
} from './store/secret-keys.ts';
import type { SecretKeyTable } from './store/tables/registrations.ts';

/** How long a replaced key still opens secrets: clients that read the key set just before the rotation can send until then. */
export const DECRYPTION_GRACE_MS = 24 * 3_600_000;

type Keeper = Pick<Broker, 'store' | 'vault'>;

const placeOf = (kid: string) => ({ table: 'secret_keys' as const, organisationId: WHOLE_BROKER, rowId: kid });

/** Creates a P-256 key; its kid is the RFC 7638 thumbprint, as for the signing keys. */
function newKey({ vault }: Keeper, now: Instant): SecretKeyTable {
  const { kid, publicJwk, privatePkcs8 } = generateSigningKey();
  return {
    kid,
    public_jwk: JSON.stringify(publicJwk),
    private_key: vault.seal(placeOf(kid), privatePkcs8),
    created_at: now,
    replaced_at: null,
  };
}

/** Returns the JWK Set to publish, creating the first key when there is none. Throws SealError when the private half was altered in the store. */
export async function publishedSecretKeys(broker: Keeper, now: Instant): Promise<string> {
  const { db } = broker.store;
  let key = await findSecretKeyInForce(db);
  if (!key) {
    await putFirstSecretKey(db, newKey(broker, now));
    key = present(await findSecretKeyInForce(db), 'key for secrets');
  }
  // Derives the public key from the private half: an attacker with write access to the database alone could otherwise publish a key of their own and
  // have secrets sealed to it.
  const privatePkcs8 = broker.vault.open(
    placeOf(key.kid),
    present(key.private_key, 'private half of the key for secrets'),
  );
  const { publicJwk } = importSigningKey({ kid: key.kid, privatePkcs8 });
  return JSON.stringify({ keys: [publishedSealingKey(key.kid, publicJwk)] });
}

/** Returns the private half of a key that is in force, or was replaced less than a day ago. Throws SealError when it was altered in the store. */
export async function secretKeyOf({ store, vault }: Keeper, kid: string, now: Instant): Promise<KeyObject | undefined> {
  const key = await findSecretKey(store.db, kid);
  if (!key?.private_key || (key.replaced_at !== null && key.replaced_at + DECRYPTION_GRACE_MS <= now)) return undefined;
  return createPrivateKey({ key: vault.open(placeOf(kid), key.private_key), format: 'der', type: 'pkcs8' });
}

/** Replaces the published key. Returns the new kid. */
export async function rotateSecretKey(broker: Keeper, now: Instant): Promise<string> {
  const key = newKey(broker, now);
  await replaceSecretKey(broker.store, key);
  return key.kid;
}

/** Destroys keys that were replaced more than a day ago: secrets sealed with them cannot be opened any more, not even from copies. */
export async function destroyOldSecretKeys({ store }: Pick<Broker, 'store'>, now: Instant): Promise<void> {
  await destroyReplacedSecretKeys(store.db, now - DECRYPTION_GRACE_MS);
}
