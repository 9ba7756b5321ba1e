/** The broker's own signing keys, one set per use: which key signs now, which are published, and how they are rotated. */

import {
  generateSigningKey,
  importSigningKey,
  type KeySet,
  keySet,
  publishedKeys,
  type SigningKey,
  signingKeyAt,
} from './crypto/key-set.ts';
import { authenticatorOf, isOwnKey } from './key-authenticity.ts';
import type { Log } from './log/log.ts';
import type { Instant } from './policy/facts.ts';
import { present } from './runtime/present.ts';
import { WHOLE_BROKER } from './store/sealed.ts';
import { listSigningKeys, putFirstSigningKey, putSigningKey, retireSigningKeys } from './store/signing-keys.ts';
import type { Store } from './store/store.ts';
import { readStored, StoredPublicJwk } from './store/stored-json.ts';
import type { SigningKeyTable } from './store/tables/installation.ts';
import type { Vault } from './vault.ts';

export type KeyUse = SigningKeyTable['use'];

const MINUTE = 60_000;

/**
 * How long before its first use a new key is published: two lifetimes of the published set in caches (receipt keys 3,600 s, bearer keys 300 s), so
 * that every verifier has fetched the key before its first signature. The root key is read from a document that is cached for 60 s.
 */
export const PUBLISHED_AHEAD_MS: Record<KeyUse, number> = {
  evidence: 120 * MINUTE,
  issuing: 10 * MINUTE,
  root: 2 * MINUTE,
  session: 2 * MINUTE,
};

export const KEY_USES = Object.keys(PUBLISHED_AHEAD_MS) as KeyUse[];

export type Keys = {
  /** Returns the key that signs for this use now. Throws when there is none, which cannot happen in a started broker. */
  signer(use: KeyUse, now: Instant): SigningKey;
  set(use: KeyUse): KeySet;
  /** The JWK Set text of a use: active keys, keys that are not used yet, and retired ones. */
  published(use: KeyUse): string;
  /** Reads all sets from the store, since another replica may have rotated. Called every minute, far below the publishing lead. */
  refresh(): Promise<void>;
  /** Adds a key that takes over after the publishing lead. Returns its kid and when it begins to sign. */
  rotate(use: KeyUse, now: Instant): Promise<{ kid: string; activatesAt: Instant }>;
};

/**
 * Reads the signing keys, creating the first of each use in an empty store. Keys that this broker did not make are left out and logged.
 *
 * @throws Error when the store has keys of a use, and none of them can sign
 */
export async function loadKeys(
  store: Store,
  vault: Vault,
  { now, log }: { now: Instant; log: Pick<Log, 'error'> },
): Promise<Keys> {
  const sets = new Map<KeyUse, { set: KeySet; published: string }>();
  const parsed = new Map<string, SigningKey>();
  /** Kids of keys that this broker did not make, and that were logged already. */
  const loggedKids = new Set<string>();

  const newRow = (use: KeyUse, createdAt: Instant, activatesAt: Instant): SigningKeyTable => {
    const key = generateSigningKey();
    const place = { table: 'signing_keys' as const, organisationId: WHOLE_BROKER, rowId: key.kid };
    return {
      kid: key.kid,
      use,
      public_jwk: JSON.stringify(key.publicJwk),
      private_key: vault.seal(place, key.privatePkcs8),
      created_at: createdAt,
      activates_at: activatesAt,
      retired_at: null,
      authenticator: authenticatorOf(vault, { table: 'signing_keys', id: key.kid, use }),
    };
  };

  const importRow = (row: SigningKeyTable): SigningKey | undefined => {
    if (!row.private_key) {
      parsed.delete(row.kid);
      return undefined;
    }
    const known = parsed.get(row.kid);
    if (known) return known;
    const privatePkcs8 = vault.open(
      { table: 'signing_keys', organisationId: WHOLE_BROKER, rowId: row.kid },
      row.private_key,
    );
    const key = importSigningKey({ kid: row.kid, privatePkcs8 });
    parsed.set(row.kid, key);
    return key;
  };

  const isOwn = async (row: SigningKeyTable): Promise<boolean> => {
    const key = { table: 'signing_keys' as const, id: row.kid, use: row.use };
    if (await isOwnKey({ store, vault }, key, row.authenticator, () => importRow(row) !== undefined)) return true;
    if (!loggedKids.has(row.kid))
      log.error(
        { security: true, kid: row.kid, use: row.use },
        'this signing key in the database was not made by this broker: it is not published, and nothing that it signed is accepted',
      );
    loggedKids.add(row.kid);
    return false;
  };

  const read = async (use: KeyUse) => {
    const rows = await listSigningKeys(store.db, use);
    const own: SigningKeyTable[] = [];
    for (const row of rows) if (await isOwn(row)) own.push(row);
    const set = keySet(
      own.map((row) => {
        const signing = importRow(row);
        return {
          kid: row.kid,
          publicJwk: readStored(StoredPublicJwk, row.public_jwk, 'public key'),
          activatesAt: row.activates_at,
          retiredAt: row.retired_at,
          ...(signing && { signing }),
        };
      }),
    );
    sets.set(use, { set, published: JSON.stringify(publishedKeys(set)) });
    return set;
  };

  for (const use of KEY_USES) {
    const set = await read(use);
    if (set.entries.some((entry) => entry.signing)) continue;
    await putFirstSigningKey(store, newRow(use, now, now));
    const { entries } = await read(use);
    if (!entries.some((entry) => entry.signing))
      throw new Error(
        `None of the stored ${use} keys with a private half was made by this broker: the table signing_keys was altered. Restore a backup.`,
      );
  }

  const loaded = (use: KeyUse) => present(sets.get(use), 'set of keys');
  return {
    signer: (use, at) => {
      const { set } = loaded(use);
      // The clock may have been set back to before the first key's activation: then the oldest key that can sign is used.
      const key = signingKeyAt(set, at) ?? set.entries.findLast((entry) => entry.signing)?.signing;
      if (!key) throw new Error(`There is no ${use} key that can sign at the moment.`);
      return key;
    },
    set: (use) => loaded(use).set,
    published: (use) => loaded(use).published,
    refresh: async () => {
      for (const use of KEY_USES) await read(use);
    },
    rotate: async (use, at) => {
      const activatesAt = at + PUBLISHED_AHEAD_MS[use];
      const row = newRow(use, at, activatesAt);
      await putSigningKey(store.db, row);
      await read(use);
      return { kid: row.kid, activatesAt };
    },
  };
}

/**
 * Destroys the private halves of keys that were replaced by an active key at least two minutes ago (another replica may sign with the old key until
 * it reloads the sets). Called periodically; the public halves stay published.
 */
export async function retireFollowedKeys(store: Store, keys: Keys, now: Instant): Promise<void> {
  for (const use of KEY_USES) {
    const current = signingKeyAt(keys.set(use), now - 2 * MINUTE);
    if (!current) continue;
    const entries = keys.set(use).entries;
    const { activatesAt } = present(
      entries.find((entry) => entry.kid === current.kid),
      'entry of the key',
    );
    const followed = entries.filter(
      (entry) => entry.kid !== current.kid && entry.signing && entry.activatesAt <= activatesAt,
    );
    await retireSigningKeys(
      store.db,
      followed.map((entry) => entry.kid),
      now,
    );
  }
}
