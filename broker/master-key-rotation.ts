/** Replacing the master key while the broker runs: new key in, everything wrapped anew, old key out. */
import type { Broker } from './broker.ts';
import { checkValue, type MasterKeys } from './crypto/master-key.ts';
import { dropPreviousKeys, type MasterKeySource, rotateKeyFile } from './crypto/master-key-file.ts';
import { findMeta, putMeta, settleMeta } from './store/meta.ts';
import { hasSealed } from './store/sealed.ts';
import type { Store } from './store/store.ts';
import { rewrapAll } from './vault.ts';

const CHECK_VALUE = 'master_key_check_value';

export type Rotated = { ok: true; keyId: string; rewrapped: number } | { ok: false; error: string };

/** Where this process has its master key from. */
export function masterKeySource(config: Broker['config']): MasterKeySource {
  return config.masterKey
    ? { environment: config.masterKey.reveal(), previous: config.previousMasterKey?.reveal() }
    : { file: config.keyFile };
}

/** Whether a new master key may be made: only while nothing is sealed and no other key was ever used on this store. */
export async function mayCreateMasterKey(store: Store): Promise<boolean> {
  return (await findMeta(store.db, CHECK_VALUE)) === undefined && !(await hasSealed(store.db));
}

/** Throws, in words, unless one of the keys is the one that this store was sealed with. */
export async function checkMasterKey(store: Store, keys: MasterKeys): Promise<void> {
  const known = await settleMeta(store.db, CHECK_VALUE, checkValue(keys.current));
  if ([keys.current, ...keys.previous].some((key) => checkValue(key) === known)) return;
  throw new Error(
    'This is not the master key that the store was sealed with, so nothing was started and nothing was changed. ' +
      'Put back the key file (or AGENT_BROKER_MASTER_KEY) that belongs to this store.',
  );
}

/** Goes on with a rotation that was cut off: wraps what still has an older key, then lets go of the older keys. */
export async function finishRotation(broker: Pick<Broker, 'store' | 'vault' | 'config'>): Promise<number> {
  const keys = broker.vault.masterKeys();
  const rewrapped = await rewrapAll(broker.store, broker.vault);
  await putMeta(broker.store.db, CHECK_VALUE, checkValue(keys.current));
  if (keys.previous.length > 0 && !broker.config.masterKey)
    broker.vault.useMasterKeys(dropPreviousKeys(broker.config.keyFile));
  return rewrapped;
}

/**
 * With a key file: makes a new key, wraps everything anew, and leaves only the new key in the file. With a key from the
 * environment the operator sets the new one with the old one as previous, restarts, and then calls this to finish.
 */
export async function rotateMasterKey(broker: Broker): Promise<Rotated> {
  const { config, vault, store } = broker;
  if (config.masterKey && vault.masterKeys().previous.length === 0)
    return {
      ok: false,
      error:
        'The master key comes from the environment. Set AGENT_BROKER_MASTER_KEY to a new key and ' +
        'AGENT_BROKER_MASTER_KEY_PREVIOUS to the present one, restart every replica, then run this again.',
    };
  if (!config.masterKey && store.dialect === 'postgres')
    return {
      ok: false,
      error:
        'Replicas on one PostgreSQL each hold the key, so one of them cannot replace it alone. Give all of them ' +
        'AGENT_BROKER_MASTER_KEY (new) and AGENT_BROKER_MASTER_KEY_PREVIOUS (present), restart them, then run this again.',
    };
  if (!config.masterKey && vault.masterKeys().previous.length === 0) vault.useMasterKeys(rotateKeyFile(config.keyFile));
  const rewrapped = await finishRotation(broker);
  return { ok: true, keyId: vault.masterKeys().current.id, rewrapped };
}
