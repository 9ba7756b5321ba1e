/**
 * Tells the keys that this broker made from those that somebody put into its database. A key that is published is believed by whoever verifies receipts, checkpoints and
 * tokens, and whoever can write to the database alone has its private half if they made it.
 */
import { SealError } from './crypto/seal.ts';
import type { Log } from './log/log.ts';
import { type PublishedKey, putAuthenticator, putFirstAuthenticators } from './store/key-authenticators.ts';
import { WHOLE_BROKER } from './store/sealed.ts';
import type { Store } from './store/store.ts';
import type { Vault } from './vault.ts';

const placeOf = ({ table, id }: PublishedKey) =>
  ({ table, column: 'authenticator', organisationId: WHOLE_BROKER, rowId: id }) as const;

/** What is stored with a key: its use, sealed for this table and this id, which is the hash of its public half. */
export const authenticatorOf = (vault: Vault, key: PublishedKey): Buffer => vault.seal(placeOf(key), key.use);

/**
 * Whether this broker made a key. `stored`: its authenticator. One that has none was added by an older release beside this one, if its private half shows so
 * (`hasPrivate`); it gets an authenticator, since without one it would be nobody's once its private half is destroyed.
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

/** Gives every key of a store from before there were authenticators its own: as they are, since nothing tells them apart. Called at each start. */
export async function adoptKeys(store: Store, vault: Vault, log: Pick<Log, 'warn'>): Promise<void> {
  const keys = await putFirstAuthenticators(store, (key) => authenticatorOf(vault, key));
  if (keys > 0)
    log.warn(
      { security: true, keys },
      'from now on only these published keys, and those that this broker makes, are its own',
    );
}
