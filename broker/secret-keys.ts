/**
 * The broker's keys for secrets that come sealed: a set of its own, with one key in it. Nothing of it is kept by a process,
 * so that a rotation is in force at once on every replica.
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

/** How long a key that was replaced still opens: whoever read the set just before has until then to send. */
export const OPENS_ON_MS = 24 * 3_600_000;

type Keeper = Pick<Broker, 'store' | 'vault'>;

const placeOf = (kid: string) => ({ table: 'secret_keys' as const, organisationId: WHOLE_BROKER, rowId: kid });

/** A new P-256 key; its kid is the thumbprint of RFC 7638, as those of the signing keys are. */
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

/** The JWK Set to publish. Makes the first key when there is none yet. Throws SealError when its private half was altered in the store. */
export async function publishedSecretKeys(broker: Keeper, now: Instant): Promise<string> {
  const { db } = broker.store;
  let key = await findSecretKeyInForce(db);
  if (!key) {
    await putFirstSecretKey(db, newKey(broker, now));
    key = present(await findSecretKeyInForce(db), 'key for secrets');
  }
  // Of the private half: who can write to the database alone could have secrets sealed to a key of their own.
  const privatePkcs8 = broker.vault.open(
    placeOf(key.kid),
    present(key.private_key, 'private half of the key for secrets'),
  );
  const { publicJwk } = importSigningKey({ kid: key.kid, privatePkcs8 });
  return JSON.stringify({ keys: [publishedSealingKey(key.kid, publicJwk)] });
}

/** The private half of a key that is in force, or was until not long ago. Throws SealError when it was tampered with. */
export async function secretKeyOf({ store, vault }: Keeper, kid: string, now: Instant): Promise<KeyObject | undefined> {
  const key = await findSecretKey(store.db, kid);
  if (!key?.private_key || (key.replaced_at !== null && key.replaced_at + OPENS_ON_MS <= now)) return undefined;
  return createPrivateKey({ key: vault.open(placeOf(kid), key.private_key), format: 'der', type: 'pkcs8' });
}

/** Publishes another key from now on. Answers its kid. */
export async function rotateSecretKey(broker: Keeper, now: Instant): Promise<string> {
  const key = newKey(broker, now);
  await replaceSecretKey(broker.store, key);
  return key.kid;
}

/** What was sealed with keys that were replaced a day ago is lost from now on, to whoever kept it as well. */
export async function destroyOldSecretKeys({ store }: Pick<Broker, 'store'>, now: Instant): Promise<void> {
  await destroyReplacedSecretKeys(store.db, now - OPENS_ON_MS);
}
