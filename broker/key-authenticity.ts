/**
 * Distinguishes the keys that this broker made from keys that somebody wrote into its database. Whoever verifies receipts, checkpoints and tokens
 * trusts every published key, and an attacker with write access to the database alone would hold the private half of a key they inserted.
 */
import { SealError } from './crypto/seal.ts';
import type { Log } from './log/log.ts';
import { type PublishedKey, putAuthenticator, putFirstAuthenticators } from './store/key-authenticators.ts';
import { WHOLE_BROKER } from './store/sealed.ts';
import type { Store } from './store/store.ts';
import type { Vault } from './vault.ts';

const placeOf = ({ table, id }: PublishedKey) =>
  ({ table, column: 'authenticator', organisationId: WHOLE_BROKER, rowId: id }) as const;

/** Returns the authenticator to store with a key: its use, sealed for this table and this id, which is the hash of its public half. */
export const authenticatorOf = (vault: Vault, key: PublishedKey): Buffer => vault.seal(placeOf(key), key.use);

/**
 * Whether this broker made a key. `stored`: its authenticator; null: an older release running beside this one may have added the key, which is
 * accepted if its private half can be opened (`hasPrivate`). Such a key gets an authenticator now, since it could not be recognised any more once its
 * private half is destroyed.
 */
export async function isOwnKey(
  { store, vault }: { store: Store; vault: Vault },
  key: PublishedKey,
  stored: Uint8Array | null,
  hasPrivate: () => boolean,
): Promise<boolean> {
  try {
    if (stored !== null) return vault.open(placeOf(key), stored).toString() === key.use;
    if (!hasPrivate()) return false;
  } catch (error) {
    if (error instanceof SealError) return false;
    throw error;
  }
  await putAuthenticator(store.db, key, authenticatorOf(vault, key));
  return true;
}

/**
 * Stores an authenticator for every key of a store that has none yet, written by a release before authenticators existed. All are accepted, since
 * nothing distinguishes them. Called at each start.
 */
export async function adoptKeys(store: Store, vault: Vault, log: Pick<Log, 'warn'>): Promise<void> {
  const keys = await putFirstAuthenticators(store, (key) => authenticatorOf(vault, key));
  if (keys > 0)
    log.warn(
      { security: true, keys },
      'from now on only these published keys, and keys that this broker makes, are accepted as its own',
    );
}
