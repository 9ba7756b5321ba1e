/** The key pair that identifies this broker to push services (VAPID, RFC 8292). Browsers bind subscriptions to it, so it is never replaced. */
import { createPrivateKey } from 'node:crypto';
import type { Broker } from './broker.ts';
import { generateSigningKey } from './crypto/key-set.ts';
import { Secret } from './crypto/secret.ts';
import { present } from './runtime/present.ts';
import { findPushKey, putFirstPushKey } from './store/push-keys.ts';
import { WHOLE_BROKER } from './store/sealed.ts';
import { readStored, StoredPublicJwk } from './store/stored-json.ts';

const PLACE = { table: 'push_keys', organisationId: WHOLE_BROKER, rowId: 'vapid' } as const;

export type PushKey = {
  /** The uncompressed point in base64url, as `PushManager.subscribe` takes it. */
  publicKey: string;
  /** The private scalar in base64url. */
  privateKey: Secret;
  /** Contact address for the operators of push services: `mailto:` or `https:` (RFC 8292 section 2.1). */
  subject: string;
};

/** Returns the key pair, creating it on the first call. Throws SealError when it was altered in the store. */
export async function pushKey({
  store,
  vault,
  clock,
  baseUrl,
  config,
}: Pick<Broker, 'store' | 'vault' | 'clock' | 'baseUrl' | 'config'>): Promise<PushKey> {
  let row = await findPushKey(store.db);
  if (!row) {
    const { publicJwk, privatePkcs8 } = generateSigningKey();
    await putFirstPushKey(store.db, {
      id: 'vapid',
      public_jwk: JSON.stringify(publicJwk),
      private_key: vault.seal(PLACE, privatePkcs8),
      created_at: clock(),
    });
    row = present(await findPushKey(store.db), 'key of web push');
  }
  const { x, y } = readStored(StoredPublicJwk, row.public_jwk, 'public key of web push');
  const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);
  const privateKey = createPrivateKey({ key: vault.open(PLACE, row.private_key), format: 'der', type: 'pkcs8' });
  return {
    publicKey: point.toString('base64url'),
    privateKey: new Secret(present(privateKey.export({ format: 'jwk' }).d, 'private scalar')),
    subject: config.pushContact ?? subjectOf(baseUrl),
  };
}

/** Push services require a contact address; a broker without https has no meaningful one, so a placeholder is used. */
const subjectOf = (baseUrl: string): string =>
  baseUrl.startsWith('https:') ? baseUrl : `mailto:operator@${new URL(baseUrl).hostname}`;
