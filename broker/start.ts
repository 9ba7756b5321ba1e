/** Brings up everything below HTTP: store, keys, vault, the way out; and takes it down again, in the reverse order. */

import { join } from 'node:path';
import { type Broker, didOf } from './broker.ts';
import type { Config } from './config.ts';
import { uuidv4 } from './crypto/ids.ts';
import { readMasterKeys } from './crypto/master-key-file.ts';
import type { Instant } from './decision/facts.ts';
import { loadKeys } from './keys.ts';
import type { Log } from './log.ts';
import { checkMasterKey, finishRotation, masterKeySource, mayCreateMasterKey } from './master-key-rotation.ts';
import { makeOutbound } from './outbound/dispatcher.ts';
import { migrate } from './store/migrate.ts';
import { openPostgres } from './store/postgres.ts';
import { openSqlite } from './store/sqlite.ts';
import type { Store } from './store/store.ts';
import { makeVault } from './vault.ts';

/** Opens the store that the configuration names and brings its tables up to date. */
export async function openStore(config: Config, log: Log): Promise<Store> {
  const store = config.databaseUrl
    ? openPostgres(config.databaseUrl.reveal(), {
        connections: config.databaseConnections,
        onError: (error) => log.warn({ err: error }, 'an idle connection to PostgreSQL broke'),
      })
    : openSqlite(join(config.dataFolder, 'store'));
  try {
    const applied = await migrate(store);
    if (applied.length > 0) log.info({ migrations: applied }, 'brought the store up to date');
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

export type StartOptions = {
  config: Config;
  log: Log;
  clock: () => Instant;
  /** Known once the listener is: the public address, and what the broker must never call, itself. */
  baseUrl: string;
  own: readonly string[];
  /** Beside those of the configuration: the sandbox. */
  allowPrivate?: readonly string[];
};

/** Builds the Broker record. On failure everything that was opened is closed again: never a half-start. */
export async function startBroker(
  store: Store,
  options: StartOptions,
): Promise<{ broker: Broker; masterKeyCreated: boolean }> {
  const { config, log, clock, baseUrl } = options;
  const allowCreate = await mayCreateMasterKey(store);
  const { keys: masterKeys, created } = readMasterKeys(masterKeySource(config), { allowCreate });
  await checkMasterKey(store, masterKeys);
  const vault = makeVault(masterKeys);
  const keys = await loadKeys(store, vault, clock());
  const outbound = makeOutbound({
    allowPrivate: [...config.allowPrivate, ...(options.allowPrivate ?? [])],
    own: options.own,
  });
  const broker: Broker = {
    config,
    baseUrl,
    did: didOf(baseUrl),
    instanceId: uuidv4(),
    clock,
    log,
    store,
    vault,
    keys,
    outbound,
  };
  // With a key file, previous keys in it mean that a rotation was cut off: go on with it now.
  if (masterKeys.previous.length > 0 && !config.masterKey) {
    const rewrapped = await finishRotation(broker);
    log.info({ rewrapped }, 'finished a rotation of the master key that was cut off');
  }
  return { broker, masterKeyCreated: created };
}
