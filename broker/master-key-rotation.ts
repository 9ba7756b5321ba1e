/** Checks the master key against the store, and rotates it while the broker runs: add the new key, wrap all data keys again, remove the old key. */

import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';
import type { Broker } from './broker.ts';
import { checkValue, MasterKeyError, type MasterKeys } from './crypto/master-key.ts';
import { dropPreviousKeys, type MasterKeySource, rotateKeyFile } from './crypto/master-key-file.ts';
import type { Config } from './environment/config.ts';
import { findMeta, putMeta, putMetaIfAbsent } from './store/meta.ts';
import { hasSealed } from './store/sealed.ts';
import { listSigningKeys } from './store/signing-keys.ts';
import type { Store } from './store/store.ts';
import { type Rewrapped, rewrapAll } from './vault.ts';

const CHECK_VALUE = 'master_key_check_value';

export type Rotated = { ok: true; keyId: string; rewrapped: number } | { ok: false; error: string };

/** Returns where this process reads its master key from. */
export function masterKeySource(config: Config): MasterKeySource {
  return config.masterKey
    ? { environment: config.masterKey.reveal(), previous: config.previousMasterKey?.reveal() }
    : { file: config.keyFile };
}

/** Whether the store is already bound to a master key. Throws an Error for the operator when this entry of a store that was in use is missing. */
export async function hasMasterKey({ db }: Store): Promise<boolean> {
  // Read first: a concurrent first start makes its signing keys after it has bound the store.
  const wasInUse = (await listSigningKeys(db, 'evidence')).length > 0;
  if ((await findMeta(db, CHECK_VALUE)) !== undefined) return true;
  if (wasInUse)
    throw new Error(
      'This store is incomplete: it has signing keys, but the table meta does not say with which master key they are sealed. A dump was loaded with errors, ' +
        'for example one of the data alone (pg_dump --data-only) into a migrated database. Load a complete dump into an empty database, in one transaction ' +
        '(pg_restore --single-transaction), or use "npx agent-broker backup" and "restore". Nothing was started and nothing was changed.',
    );
  return false;
}

/** Whether a new master key may be created: only while nothing is sealed and no other key was ever used on this store. */
export async function mayCreateMasterKey(store: Store): Promise<boolean> {
  return !(await hasMasterKey(store)) && !(await hasSealed(store.db));
}

const WRONG_KEY =
  'This is not the master key that the store was sealed with, so nothing was started and nothing was changed. ' +
  'Put back the key file (or AGENT_BROKER_MASTER_KEY) that belongs to this store.';

const isAmong = (keys: MasterKeys, known: string): boolean =>
  [keys.current, ...keys.previous].some((key) => checkValue(key) === known);

/** Throws an Error for the operator when the store was sealed with another key. Writes nothing. */
export async function refuseWrongMasterKey(store: Store, keys: MasterKeys): Promise<void> {
  const known = await findMeta(store.db, CHECK_VALUE);
  if (known !== undefined && !isAmong(keys, known)) throw new Error(WRONG_KEY);
}

/** Does the same check against the check value of a backup. */
export function refuseKeyOfOther(keys: MasterKeys, known: string): void {
  if (!isAmong(keys, known)) throw new Error(WRONG_KEY);
}

/**
 * Binds the store to this key if it is not bound yet; when several processes start concurrently, one wins. Throws when the store is bound to another
 * key.
 */
export async function settleMasterKey(store: Store, keys: MasterKeys): Promise<void> {
  const known = await putMetaIfAbsent(store.db, CHECK_VALUE, checkValue(keys.current));
  if (!isAmong(keys, known)) throw new Error(WRONG_KEY);
}

/** Whether the key file can be replaced: not where it is mounted read-only or owned by another user, as credentials of systemd are. */
function canReplaceKeyFile(path: string): boolean {
  try {
    accessSync(dirname(path), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Whether this process alone may change the key file, and is able to. Replicas on one PostgreSQL each have their own file, or share one. */
export const ownsKeyFile = ({ config, store }: Pick<Broker, 'config' | 'store'>): boolean =>
  config.masterKey === undefined && store.dialect === 'sqlite' && canReplaceKeyFile(config.keyFile);

/**
 * Completes a rotation: wraps data keys that are still wrapped with an older key, then drops the older keys. Values that no key opens are left as
 * they are, and the older keys are kept too: repairing such a row may need them.
 */
export async function finishRotation(broker: Pick<Broker, 'store' | 'vault' | 'config'>): Promise<Rewrapped> {
  const { store, vault, config } = broker;
  const done = await rewrapAll(store, vault);
  await putMeta(store.db, CHECK_VALUE, checkValue(vault.masterKeys().current));
  if (ownsKeyFile(broker) && vault.masterKeys().previous.length > 0 && done.unreadable.length === 0)
    vault.useMasterKeys(dropPreviousKeys(config.keyFile));
  return done;
}

/**
 * With a key file of its own: creates a new key, wraps all data keys again, and leaves only the new key in the file. With a key from the environment,
 * or a file that replicas share, the operator first gives all of them both keys, and then calls this.
 */
export async function rotateMasterKey(broker: Pick<Broker, 'config' | 'store' | 'vault'>): Promise<Rotated> {
  try {
    return await rotateNow(broker);
  } catch (error) {
    if (error instanceof MasterKeyError) return { ok: false, error: error.message };
    throw error;
  }
}

async function rotateNow(broker: Pick<Broker, 'config' | 'store' | 'vault'>): Promise<Rotated> {
  const { config, vault, store } = broker;
  if (vault.masterKeys().previous.length === 0) {
    if (!ownsKeyFile(broker)) return { ok: false, error: howToRotate(config.masterKey !== undefined, store) };
    vault.useMasterKeys(rotateKeyFile(config.keyFile));
  }
  const { wrapped, unreadable } = await finishRotation(broker);
  if (unreadable.length > 0)
    return {
      ok: false,
      error:
        `${wrapped} stored secrets were wrapped again, but ${unreadable.length} cannot be opened with any key, so the ` +
        `older key is kept, too: ${unreadable.slice(0, 10).join(', ')}. Replace or remove them, then run this again.`,
    };
  return { ok: true, keyId: vault.masterKeys().current.id, rewrapped: wrapped };
}

function howToRotate(fromEnvironment: boolean, store: Store): string {
  const both = fromEnvironment
    ? 'AGENT_BROKER_MASTER_KEY to a new key and AGENT_BROKER_MASTER_KEY_PREVIOUS to the present one'
    : 'the first line of the key file to a new key and the second to the present one';
  const replicas =
    store.dialect === 'postgres'
      ? ' on every replica (to serve throughout: first restart all with the new key in the second place)'
      : '';
  return `This broker cannot replace its master key alone. Set ${both}${replicas}, restart, then run this again.`;
}
