/** Starts everything below HTTP: store, keys, vault, egress; and stops it in the reverse order. */

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
import { openPostgres } from '../store/postgres/postgres.ts';
import { findKeysRestored } from '../store/restored.ts';
import { openSqlite } from '../store/sqlite/sqlite.ts';
import type { Store } from '../store/store.ts';
import type { StoreClock } from '../store-clock.ts';
import { NO_TRACING, type Tracing } from '../telemetry/call-watch.ts';
import { type Metrics, makeMetrics, NO_METRICS } from '../telemetry/metrics.ts';
import { makeVault } from '../vault.ts';
import { nextGeneration, refuseCutRestore, refuseOlderStore } from './generation.ts';
import { egressToCollector, makeEgress } from './make-egress.ts';
import { openRateCounts } from './rate-counts.ts';
import { warnOfDatabase, warnOfOtherAddress } from './start-warnings.ts';

/** Opens the store that the configuration names, without migrating it. */
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

/** Reads the existing master keys; undefined when there is no key file (yet). Throws MasterKeyError. */
function findMasterKeys(config: Config): MasterKeys | undefined {
  try {
    return readMasterKeys(masterKeySource(config), { allowCreate: false }).keys;
  } catch (error) {
    if (error instanceof MasterKeyError && error.code === 'missing') return undefined;
    throw error;
  }
}

/**
 * Opens the store that the configuration names and migrates it. The master key is checked first: with an unusable key nothing is
 * created, and with the key of another store nothing is changed, its tables included.
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
    await warnOfDatabase(store, config, log);
    // Creating a new store applies all migrations, which is no useful information at a first start.
    if (applied.length > 0) log[isNew ? 'debug' : 'info']({ migrations: applied }, 'applied migrations');
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

export type StartOptions = {
  config: Config;
  log: Log;
  clock: StoreClock;
  /** Known once the port is: the public address, and the broker's own addresses, which it must never call. */
  baseUrl: string;
  own: readonly string[];
  /** In addition to those of the configuration: the sandbox. */
  allowPrivate?: readonly string[];
};

/** Reads the master keys, creates the first one of a new store, and checks that they belong to this store. */
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
    // A concurrent process created the first key of this store; this one has not sealed anything yet.
    if (found.created) rmSync(config.keyFile, { force: true });
    throw error;
  }
  return found;
}

/** Builds the Broker record. When that fails, throws and leaves nothing open. */
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
  await warnOfOtherAddress(store, config, log);
  const waysOut = makeEgress(options);
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
  // Reports at the start whether a standby can be read.
  void store.reports();
  return { broker, masterKeyCreated: created };
}

/** Loads OpenTelemetry only when something is exported: loading takes a fifth of a second. */
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
    outbound: egressToCollector(otel, { config, own }),
    watch: watchOutage(log, {
      failed: 'the collector does not accept traces or metrics',
      worked: 'the collector accepts traces and metrics again',
      level: 'warn',
    }),
    instruments: metrics.instruments,
  });
}

/** With a key file of our own, previous keys in it mean that a rotation was interrupted: continues it. */
async function resumeRotation(broker: Pick<Broker, 'config' | 'store' | 'vault'>, log: Log): Promise<void> {
  try {
    // The lock of the store's folder guarantees that no other broker uses it.
    removeUnfinishedChange(broker.config.keyFile);
    if (broker.vault.masterKeys().previous.length === 0) return;
    const { wrapped, unreadable } = await finishRotation(broker);
    if (unreadable.length > 0) log.error({ unreadable }, 'these values cannot be opened with any master key');
    else log.info({ rewrapped: wrapped }, 'finished an interrupted rotation of the master key');
  } catch (error) {
    // All needed keys are available, so the broker can serve; the logged error describes the problem.
    if (!(error instanceof MasterKeyError)) throw error;
    log.error({ err: error }, 'an interrupted rotation of the master key cannot be finished now');
  }
}
