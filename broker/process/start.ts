/** Brings up everything below HTTP: store, keys, vault, the way out; and takes it down again, in the reverse order. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Broker, didOf, proxyUrlOf } from '../broker.ts';
import { readBuild } from '../build.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { MasterKeyError, type MasterKeys } from '../crypto/master-key.ts';
import { keyFolderWarning, readMasterKeys, removeUnfinishedChange } from '../crypto/master-key-file.ts';
import type { Config } from '../environment/config.ts';
import { joinFleet } from '../fleet-run.ts';
import { adoptKeys } from '../key-authenticity.ts';
import { loadKeys } from '../keys.ts';
import type { Log } from '../log/log.ts';
import {
  finishRotation,
  hasMasterKey,
  masterKeySource,
  mayCreateMasterKey,
  ownsKeyFile,
  refuseWrongMasterKey,
  settleMasterKey,
} from '../master-key-rotation.ts';
import { watchOutage } from '../outage.ts';
import { adoptRetentions } from '../retention-authenticity.ts';
import { remoteFolder } from '../runtime/remote-folder.ts';
import { findNewerMigrations, isMigrated, migrate } from '../store/migrate.ts';
import { openPostgres } from '../store/postgres.ts';
import { settingsThatLoseCommits } from '../store/postgres-durability.ts';
import { otherEncoding } from '../store/postgres-encoding.ts';
import { isUnverified } from '../store/postgres-url.ts';
import { findKeysRestored } from '../store/restored.ts';
import { openSqlite } from '../store/sqlite.ts';
import type { Store } from '../store/store.ts';
import type { StoreClock } from '../store-clock.ts';
import { NO_TRACING, type Tracing } from '../telemetry/call-watch.ts';
import { type Metrics, makeMetrics, NO_METRICS } from '../telemetry/metrics.ts';
import { makeVault } from '../vault.ts';
import { nextGeneration, refuseCutRestore, refuseOlderStore } from './generation.ts';
import { openRateCounts } from './rate-counts.ts';
import { makeWaysOut, wayToCollector } from './ways-out.ts';

/** Opens the store that the configuration names, as it is. */
export function openPlainStore(config: Config, log: Log): Store {
  return config.databaseUrl
    ? openPostgres(config.databaseUrl.reveal(), {
        connections: config.databaseConnections,
        onError: (error) => log.warn({ err: error }, 'idle connection to PostgreSQL lost'),
        standby: config.databaseReadUrl && {
          url: config.databaseReadUrl.reveal(),
          watch: watchOutage(log, {
            failed: 'the standby of DATABASE_READ_URL is not read: DATABASE_URL answers reports, too',
            worked: 'the standby of DATABASE_READ_URL is read again',
            level: 'warn',
          }),
        },
      })
    : openSqlite(join(config.dataFolder, 'store'));
}

/** The master keys that are there now; undefined when there is no key file (yet). Throws MasterKeyError. */
function findMasterKeys(config: Config): MasterKeys | undefined {
  try {
    return readMasterKeys(masterKeySource(config), { allowCreate: false }).keys;
  } catch (error) {
    if (error instanceof MasterKeyError && error.code === 'missing') return undefined;
    throw error;
  }
}

/**
 * Opens the store that the configuration names and brings its tables up to date. The master key comes first: with one that
 * cannot be used nothing is made, and with one that is not this store's nothing is changed, its tables included.
 */
export async function openStore(config: Config, log: Log): Promise<Store> {
  const masterKeys = findMasterKeys(config);
  refuseCutRestore(config);
  const store = openPlainStore(config, log);
  try {
    if ((await isMigrated(store)) && (await hasMasterKey(store))) {
      const { keys } = masterKeys
        ? { keys: masterKeys }
        : readMasterKeys(masterKeySource(config), { allowCreate: false });
      await refuseWrongMasterKey(store, keys);
    }
    await refuseOlderStore(store, config);
    const isNew = !(await isMigrated(store));
    const applied = await migrate(store, readBuild().version);
    const newer = await findNewerMigrations(store);
    if (newer.length > 0)
      log.warn({ migrations: newer }, 'a newer release has migrated the store; this one may run on it, too');
    await warnOfLostCommits(store, log);
    await warnOfEncoding(store, log);
    warnOfUnverified(config, log);
    // All of them make a new store, which says nothing to whoever starts the broker for the first time.
    if (applied.length > 0) log[isNew ? 'debug' : 'info']({ migrations: applied }, 'applied migrations');
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** SQLite is held to it when it is opened; PostgreSQL is the operator's. */
async function warnOfLostCommits(store: Store, log: Log): Promise<void> {
  if (store.dialect !== 'postgres') return;
  for (const setting of await settingsThatLoseCommits(store.db))
    log.warn(`PostgreSQL runs with ${setting} = off: what was answered may be lost when it crashes`);
}

/** Of a store that an earlier release made. */
async function warnOfEncoding(store: Store, log: Log): Promise<void> {
  const encoding = await otherEncoding(store);
  if (encoding !== undefined)
    log.warn(
      `PostgreSQL stores the texts of this database as ${encoding}: what that lacks cannot be stored. Back up, and restore into a database with the encoding UTF8`,
    );
}

function warnOfUnverified({ databaseUrl, databaseReadUrl }: Config, log: Log): void {
  for (const [name, url] of Object.entries({ DATABASE_URL: databaseUrl, DATABASE_READ_URL: databaseReadUrl }))
    if (url !== undefined && isUnverified(url.reveal()))
      log.warn(
        { security: true },
        `${name} says sslmode=no-verify: the certificate of PostgreSQL is not verified, and whoever is in between can read and change everything`,
      );
}

export type StartOptions = {
  config: Config;
  log: Log;
  clock: StoreClock;
  /** Known once the listener is: the public address, and what the broker must never call, itself. */
  baseUrl: string;
  own: readonly string[];
  /** Beside those of the configuration: the sandbox. */
  allowPrivate?: readonly string[];
};

/** Reads the master keys, making the first one of a new store, and sees that they are this store's. */
async function loadMasterKeys(
  store: Store,
  { config, log }: Pick<StartOptions, 'config' | 'log'>,
): Promise<{ keys: MasterKeys; created: boolean }> {
  const allowCreate = await mayCreateMasterKey(store);
  const source = masterKeySource(config);
  const found = readMasterKeys(source, { allowCreate });
  const warning = 'file' in source ? keyFolderWarning(source.file) : undefined;
  if (warning !== undefined) log.warn({ security: true }, warning);
  try {
    await settleMasterKey(store, found.keys);
  } catch (error) {
    // Another process made the first key of this store at the same moment; this one never sealed anything.
    if (found.created) rmSync(config.keyFile, { force: true });
    throw error;
  }
  return found;
}

/** Builds the Broker record. Throws when it cannot, and then nothing of it is open: never a half-start. */
export async function startBroker(
  store: Store,
  options: StartOptions,
): Promise<{ broker: Broker; masterKeyCreated: boolean }> {
  const { config, log, clock: storeClock, baseUrl } = options;
  const clock = storeClock.now;
  const { keys: masterKeys, created } = await loadMasterKeys(store, options);
  const vault = makeVault(masterKeys);
  await adoptKeys(store, vault, log);
  await adoptRetentions(store, vault, log);
  const keys = await loadKeys(store, vault, { now: clock(), log });
  if (ownsKeyFile({ config, store })) await resumeRotation({ config, store, vault }, log);
  await nextGeneration(store, config, log);
  const waysOut = makeWaysOut(options);
  const instanceId = uuidv4();
  const metrics = config.metrics ? makeMetrics() : NO_METRICS;
  const did = didOf(baseUrl);
  const broker: Broker = {
    config,
    baseUrl,
    proxyUrl: proxyUrlOf(baseUrl, config.proxyHost),
    did,
    instanceId,
    fleetRun: await joinFleet(store, log, { instanceId, release: readBuild().version }, clock()),
    clock,
    storeClock,
    keysRestoredAt: await findKeysRestored(store.db),
    log,
    metrics,
    tracing: await startTracing(options, metrics, instanceId),
    store,
    rateCounts: await openRateCounts({ store, config, log, did }),
    storeOutage: watchOutage(log, { failed: 'the store does not answer', worked: 'the store answers again' }),
    vault,
    keys,
    auditFolder: config.auditFolder === undefined ? undefined : remoteFolder(config.auditFolder),
    testPlatforms: options.allowPrivate ?? [],
    ...waysOut,
  };
  // So that whoever starts it sees at once whether a standby can be read.
  void store.reports();
  return { broker, masterKeyCreated: created };
}

/** Loads OpenTelemetry only where something is sent: that takes a fifth of a second. */
async function startTracing(
  { config, log, own }: StartOptions,
  metrics: Metrics,
  instanceId: string,
): Promise<Tracing> {
  const { otel } = config;
  if (otel === undefined) return NO_TRACING;
  const { startOpenTelemetry } = await import('../telemetry/open-telemetry.ts');
  const { version } = readBuild();
  return startOpenTelemetry({
    ...otel,
    attributes: {
      ...otel.attributes,
      'service.version': version,
      'service.instance.id': instanceId,
    },
    version,
    outbound: wayToCollector(otel, { config, own }),
    watch: watchOutage(log, {
      failed: 'the collector takes no traces or metrics',
      worked: 'the collector takes them again',
      level: 'warn',
    }),
    instruments: metrics.instruments,
  });
}

/** With a key file of our own, previous keys in it mean that a rotation was cut off: goes on with it. */
async function resumeRotation(broker: Pick<Broker, 'config' | 'store' | 'vault'>, log: Log): Promise<void> {
  try {
    // The lock of the store's folder says that no other broker is at it.
    removeUnfinishedChange(broker.config.keyFile);
    if (broker.vault.masterKeys().previous.length === 0) return;
    const { wrapped, unreadable } = await finishRotation(broker);
    if (unreadable.length > 0) log.error({ unreadable }, 'these values can be opened with no master key');
    else log.info({ rewrapped: wrapped }, 'finished an interrupted rotation of the master key');
  } catch (error) {
    // All keys that are needed are here, so the broker can serve; the file says what is wrong with it.
    if (!(error instanceof MasterKeyError)) throw error;
    log.error({ err: error }, 'an interrupted rotation of the master key cannot be finished now');
  }
}
