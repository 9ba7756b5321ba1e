/** Restores a backup in such a way that nothing done since the backup is done again: see store/end-pending-items.ts. */
import { constants, copyFileSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readBuild } from '../build.ts';
import { readMasterKeys } from '../crypto/master-key-file.ts';
import type { Config } from '../environment/config.ts';
import type { Log } from '../log/log.ts';
import { hasMasterKey, masterKeySource, refuseKeyOfOther, refuseWrongMasterKey } from '../master-key-rotation.ts';
import { syncFile, syncFolder } from '../runtime/sync-file.ts';
import { type BackupManifest, hashFile, readManifest } from '../store/backup-manifest.ts';
import { endPendingItems } from '../store/end-pending-items.ts';
import { findGeneration, markRestore, settleGeneration, unmarkRestore } from '../store/generation.ts';
import { refuseLiveInstances } from '../store/instances.ts';
import { lockFolder } from '../store/lock.ts';
import { isMigrated, migrate } from '../store/migrate.ts';
import { loadDump, type PostgresPrograms } from '../store/postgres/backup.ts';
import { refuseOtherEncoding } from '../store/postgres/encoding.ts';
import { openSqlite } from '../store/sqlite/sqlite.ts';
import type { Store } from '../store/store.ts';
import { postgresTime } from '../store/store-time.ts';
import { newestSeen, rememberGeneration, restoringPlace } from './generation.ts';
import { openPlainStore } from './start.ts';

export type Restored = {
  /** When the backup was made; null: the store was put back by other means. */
  made_at: string | null;
  generation: number;
  /** Where the previous store is now. */
  replaced: string | null;
};

/**
 * Restores a backup into an empty place. `replace`: replaces the store that was here, which cannot be started any more; a SQLite store in the
 * data folder is kept beside it. `nothingSince`: no call was made after the backup. Everything is checked first. Throws, in words; then nothing
 * that a broker reads is changed.
 */
export async function restoreBackup(
  file: string,
  {
    config,
    log,
    programs,
    replace,
    nothingSince,
  }: { config: Config; log: Log; programs: PostgresPrograms; replace: boolean; nothingSince: boolean },
): Promise<Restored> {
  const manifest = await readChecked(file, config);
  const number = nextNumber(config, manifest);
  const remember = () => rememberNumber(config, manifest.store_id, number, log);
  const madeAt = Date.parse(manifest.made_at);
  const settled = { made_at: manifest.made_at, generation: number };
  const url = config.databaseUrl?.reveal();
  if (url !== undefined) {
    if (!replace) refuseKnown(config, manifest.store_id);
    const store = openPlainStore(config, log);
    try {
      await refuseOtherEncoding(store);
      // If killed before `settle` has committed, the mark prevents this database from being started anywhere. If killed after that, before
      // `remember`, it starts under review, where nothing is replayed, and that start writes the number. The previous store can be started until
      // then, since nothing of it was put back.
      await loadDump(url, file, manifest.rows, programs, () => markRestore(store.db));
      await settle(store, { madeAt, number, nothingSince });
      remember();
    } finally {
      await store.close();
    }
    return { ...settled, replaced: null };
  }
  const place = join(config.dataFolder, 'store');
  refuseLink(place);
  const isThere = existsSync(join(place, 'broker.db'));
  if (isThere && !replace)
    throw new Error(
      `There is a store in ${place}. To replace it with the backup, and keep it under another name, add --replace.`,
    );
  if (!replace) refuseKnown(config, manifest.store_id);
  const lock = existsSync(place) ? lockFolder(place) : undefined;
  const next = restoringPlace(config.dataFolder);
  try {
    rmSync(next, { recursive: true, force: true });
    mkdirSync(next, { recursive: true, mode: 0o700 });
    copyFileSync(file, join(next, 'broker.db'), constants.COPYFILE_FICLONE);
    const store = openSqlite(next);
    try {
      await settle(store, { madeAt, number, nothingSince });
    } finally {
      await store.close();
    }
    syncFile(join(next, 'broker.db'));
    // Windows renames no folder in which a file is open.
    if (process.platform === 'win32') lock?.release();
    const before = `${place}.replaced-${Date.now()}`;
    // From here on the previous store can no longer start, even if the restore is interrupted: it is moved away, or its generation is outdated.
    if (existsSync(place)) moveAway(place, before, next);
    remember();
    renameSync(next, place);
    if (!isThere) rmSync(before, { recursive: true, force: true });
    syncFolder(config.dataFolder);
    return { ...settled, replaced: isThere ? before : null };
  } catch (error) {
    // The failed copy is deleted when a store is in place, which stays in use and needs the disk space. Without one the copy stays: it keeps a broker
    // from starting with a new, empty store.
    if (existsSync(join(place, 'broker.db'))) rmSync(next, { recursive: true, force: true });
    throw error;
  } finally {
    lock?.release();
  }
}

/** What to do where the store's folder cannot be replaced. */
const instead = (place: string): string =>
  'Restore into an empty data folder (AGENT_BROKER_DATA, with a copy of the key file in its keys/), ' +
  `and copy store/broker.db from there into ${place}`;

/** Refuses a store that is on another disk by a symbolic link: the restored store would replace the link, and be on the disk of the data folder. */
function refuseLink(place: string): void {
  for (const path of [place, join(place, 'broker.db')])
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink())
      throw new Error(
        `${path} is a symbolic link, and a restore puts a new folder in the place of ${place}. ${instead('the folder that it leads to')}. Nothing was changed.`,
      );
}

/** Moves the folder of the store. When it is a mount, which cannot be moved, deletes `next` and throws an error that says what to do. */
function moveAway(place: string, to: string, next: string): void {
  try {
    renameSync(place, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY') throw error;
    rmSync(next, { recursive: true, force: true });
    throw new Error(
      `${place} is a mount point, and a restore puts a new folder in its place. ${instead('the mount')}; or mount the volume on the data folder. Nothing was changed.`,
      { cause: error },
    );
  }
}

/**
 * Treats the store in place as restored: for a store that was put back by other means, as a snapshot of a disk or of a database.
 * Throws, in words, when a broker runs on the store, or when it has another master key; then nothing is changed.
 */
export async function restoreInPlace({
  config,
  log,
  nothingSince,
}: {
  config: Config;
  log: Log;
  nothingSince: boolean;
}): Promise<Restored> {
  const store = openPlainStore(config, log);
  try {
    if (!(await isMigrated(store)) || !(await hasMasterKey(store)))
      throw new Error('There is no store that could be marked as restored.');
    await refuseWrongMasterKey(store, readMasterKeys(masterKeySource(config), { allowCreate: false }).keys);
    if (store.dialect === 'postgres') await refuseLiveInstances(store.db, await postgresTime(store.db));
    const found = await findGeneration(store.db);
    const seen = { store_id: found?.storeId ?? null, generation: found?.number ?? 0 };
    const number = nextNumber(config, seen);
    // Before the first change: nothing in the store itself shows that it was put back, so after an interruption here it must not start.
    rememberNumber(config, seen.store_id, number, log);
    await settle(store, { madeAt: null, number, nothingSince });
    return { made_at: null, generation: number, replaced: null };
  } finally {
    await store.close();
  }
}

/** Reads the manifest. Refuses a file that is damaged, not for this kind of store, or not for this master key. */
async function readChecked(file: string, config: Config): Promise<BackupManifest> {
  if (!existsSync(file)) throw new Error(`There is no file ${file}.`);
  const manifest = readManifest(file);
  const kind = config.databaseUrl ? 'postgres' : 'sqlite';
  if (manifest.store !== kind)
    throw new Error(
      `This is a backup of ${manifest.store === 'postgres' ? 'PostgreSQL: name the database in DATABASE_URL' : 'SQLite: unset DATABASE_URL'}.`,
    );
  if (statSync(file).size !== manifest.bytes || (await hashFile(file)) !== manifest.sha256)
    throw new Error(`${file} is damaged: it does not match its manifest. Use another backup.`);
  if (manifest.master_key_check_value !== null)
    refuseKeyOfOther(
      readMasterKeys(masterKeySource(config), { allowCreate: false }).keys,
      manifest.master_key_check_value,
    );
  return manifest;
}

/** Refuses when the store of the backup was started here before: after the restore that store could not be started here any more. */
function refuseKnown(config: Config, storeId: string | null): void {
  if (storeId !== null && newestSeen(config, storeId) > 0)
    throw new Error(
      'The store of this backup was started with this data folder or this key file. Once the backup is restored here, that store no longer starts. ' +
        'To replace it by the backup, add --replace. To try the backup without replacing it, name another data folder (AGENT_BROKER_DATA), with a copy of the key file. Nothing was changed.',
    );
}

/** Returns a number beyond every generation that a replica has seen of the store. Generations count by ones from 1; this is seconds since 1970. */
function nextNumber(
  config: Config,
  { store_id: storeId, generation }: Pick<BackupManifest, 'store_id' | 'generation'>,
): number {
  const seen = storeId === null ? 0 : newestSeen(config, storeId);
  return Math.max(generation, seen, Math.floor(Date.now() / 1000)) + 1;
}

/** Writes the number outside of the store: from then on no store with a lower generation starts here. */
function rememberNumber(config: Config, storeId: string | null, number: number, log: Log): void {
  if (storeId === null) return;
  mkdirSync(config.dataFolder, { recursive: true, mode: 0o700 });
  rememberGeneration(config, { storeId, number }, log);
}

async function settle(
  store: Store,
  { number, ...backup }: { madeAt: number | null; nothingSince: boolean; number: number },
): Promise<void> {
  await migrate(store, readBuild().version);
  const now = store.dialect === 'postgres' ? await postgresTime(store.db) : Date.now();
  await store.db.transaction().execute(async (tx) => {
    await endPendingItems(tx, { now: Math.floor(now), ...backup });
    await settleGeneration(tx, number);
    if (store.dialect === 'postgres') await unmarkRestore(tx);
  });
}
