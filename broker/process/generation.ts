/**
 * Detects an older copy of the store. The store's generation number is in the store itself, in the data folder and beside the key file, and grows
 * with each start, each stop and each hour: a store whose number is lower than a number outside was put back, and with it everything that
 * was used up or decided since would be valid again.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Config } from '../environment/config.ts';
import type { Log } from '../log/log.ts';
import {
  advanceGeneration,
  findBackupMark,
  findGeneration,
  type Generation,
  hasRestoreMark,
} from '../store/generation.ts';
import { isMigrated } from '../store/migrate.ts';
import type { Store } from '../store/store.ts';

/** The highest generation by the store's id: one key may open several stores. */
const Seen = z.record(z.string(), z.number());

type Places = Pick<Config, 'dataFolder' | 'keyFile' | 'masterKey'>;

const HOUR_MS = 3_600_000;

const RESTORE =
  'Restore it with "npx agent-broker restore FILE", or, if it was restored by other means, run "npx agent-broker restore --in-place". ' +
  'Both end the items that were pending and let an admin review the store. Nothing was started and nothing was changed.';

/** The folder where a restored SQLite store is prepared before it is moved into place. */
export const restoringPlace = (dataFolder: string): string => join(dataFolder, 'store.restoring');

/** Throws, in words, when a restore was killed before its store was in place. Creates nothing, so that the restore can be run again. */
export function refuseCutRestore({ dataFolder, databaseUrl }: Pick<Config, 'dataFolder' | 'databaseUrl'>): void {
  const place = restoringPlace(dataFolder);
  if (databaseUrl === undefined && existsSync(place) && !existsSync(join(dataFolder, 'store', 'broker.db')))
    throw new Error(
      `A restore was interrupted before its store was in place. Run "npx agent-broker restore FILE" again; or, to start without it, remove ${place}. Nothing was started.`,
    );
}

/** Throws, in words, when the store is a backup, or an older copy, or a restore of it was interrupted. Changes nothing. */
export async function refuseOlderStore(store: Store, places: Places): Promise<void> {
  if (store.dialect === 'postgres' && (await hasRestoreMark(store.db)))
    throw new Error(
      'A restore into this database was interrupted, or is still running. Make an empty database, and run "npx agent-broker restore FILE" again. Nothing was started and nothing was changed.',
    );
  if (!(await isMigrated(store))) return;
  const madeAt = await findBackupMark(store.db);
  if (madeAt !== undefined)
    throw new Error(
      `This store is a backup of ${madeAt} that was copied into place without the restore command. ${RESTORE}`,
    );
  // Read before the store: a process that starts concurrently advances the store first, and then writes these files.
  const seen = seenIn(places);
  const found = await findGeneration(store.db);
  if (found && found.number < seen(found.storeId))
    throw new Error(
      `This store is older than the one that ran here before: it is at generation ${found.number}, and generation ${seen(found.storeId)} was already seen. ${RESTORE}`,
    );
}

/** Advances the store to its next generation, and writes the number outside of it. */
export async function nextGeneration(store: Store, places: Places, log: Log): Promise<void> {
  // The store first, so that the number outside is never ahead of the store's.
  rememberGeneration(places, await advanceGeneration(store.db), log);
}

/** Returns the background job that advances the generation once an hour. */
export function generationJob({ store, config, log }: { store: Store; config: Places; log: Log }) {
  let last: number | undefined;
  return async (now: number): Promise<void> => {
    last ??= now;
    // A clock that was ahead may have been set back since.
    if (Math.abs(now - last) < HOUR_MS) return;
    last = now;
    await nextGeneration(store, config, log);
  };
}

/** Reads the highest generation of a store that was seen here; 0: none was. */
function seenIn(places: Places): (storeId: string) => number {
  const remembered = filesOf(places).map(read);
  return (storeId) => Math.max(...remembered.map((one) => one[storeId] ?? 0));
}

/** Returns the highest generation of a store that was seen here; 0: none was. */
export const newestSeen = (places: Places, storeId: string): number => seenIn(places)(storeId);

/** Writes the number in the data folder and beside the key file. */
export function rememberGeneration(places: Places, { storeId, number }: Generation, log: Log): void {
  for (const file of filesOf(places))
    try {
      const partial = `${file}.${process.pid}`;
      const seen = { ...read(file), [storeId]: Math.max(number, read(file)[storeId] ?? 0) };
      writeFileSync(partial, `${JSON.stringify(seen)}\n`, { mode: 0o600 });
      renameSync(partial, file);
    } catch (error) {
      // A key from a mounted secret is in a read-only folder. The other file has the number.
      log.debug({ err: error, file }, 'the generation of the store cannot be written here');
    }
}

const filesOf = ({ dataFolder, keyFile, masterKey }: Places): string[] => [
  join(dataFolder, 'generation.json'),
  ...(masterKey === undefined ? [`${keyFile}.generation`] : []),
];

/** Returns an empty record for a missing or malformed file. */
function read(file: string): Record<string, number> {
  try {
    return Seen.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return {};
  }
}
