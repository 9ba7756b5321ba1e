/** Exports the receipt log as a file that can be verified offline: rows in order, tiles, and the checkpoint that covers them. */
import { setImmediate } from 'node:timers/promises';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { pause } from '../runtime/waits.ts';
import { purgedUntil } from '../store/audit-purges.ts';
import { dropHold, putHold, renewHold } from '../store/log-holds.ts';
import { findEntries, findNewestCheckpoint, findTile } from '../store/receipt-logs.ts';
import type { Db } from '../store/store.ts';
import { type LogRow, logRow, rowsOfEntries } from './log-rows.ts';
import { leafHash, TILE_WIDTH } from './merkle.ts';
import { noteOf, originOf, verifierKeys } from './read-log.ts';
import { entriesIn } from './tree.ts';

/** The first line. `checkpoint`: a signed note; null: the log is empty. `keys`: verifier keys, newest first. */
export type LogHeader = {
  type: 'log';
  origin: string;
  first: number;
  size: number;
  checkpoint: string | null;
  keys: string[];
};
/** The hashes of a tile (C2SP tlog-tiles), concatenated, in base64. */
export type LogTile = { type: 'tile'; level: number; index: number; hashes: string };
export type LogLine = LogHeader | LogRow | LogTile;

type Exporting = Pick<Broker, 'store' | 'storeClock' | 'vault' | 'baseUrl'>;

/** Lifetime of a hold without renewal: the client may read slowly. */
const HOLD_MS = 10 * 60_000;
const RENEW_MS = 60_000;
/** Limit of an export's duration; after it the hold ends. */
const MAX_DURATION_MS = 24 * 3600 * 1000;
/** Interval and number of checks while waiting for a standby, for as long as it may lag. */
const STANDBY_STEP_MS = 200;
const STANDBY_STEPS = 50;

/**
 * Yields the lines of an export up to the newest checkpoint, in groups of a tile. `first`: index of the first row, rounded down to the beginning
 * of its tile. During the export only rows are deleted whose deletion is proved by the exported checkpoint (purge.ts). Throws when the rows
 * cannot be held any longer.
 */
export async function* exportLog(broker: Exporting, organisationId: string, first: number): AsyncGenerator<LogLine[]> {
  const { db } = broker.store;
  const hold = { organisationId, id: uuidv4() };
  const until = () => broker.storeClock.now() + HOLD_MS;
  // Before the checkpoint is chosen: from here on, rows are kept whose deletion only a later checkpoint proves.
  await putHold(db, hold, until());
  try {
    const began = performance.now();
    let renewedAt = Number.NEGATIVE_INFINITY;
    for await (const { lines, size } of groupsOf(broker, organisationId, first)) {
      if (performance.now() - renewedAt >= RENEW_MS) {
        renewedAt = performance.now();
        const isLate = renewedAt - began > MAX_DURATION_MS;
        if (isLate || !(await renewHold(db, hold, { size, until: until() })))
          throw new Error(
            'The export took too long: rows that it has not reached yet may have been deleted. Start the export again.',
          );
      }
      yield lines;
    }
  } finally {
    // If this fails, the hold expires by itself.
    await dropHold(db, hold).catch(() => {});
  }
}

/** Returns the database to read. A standby only once it has the newest checkpoint, if rows were deleted: that checkpoint proves the deletions. */
async function readerOf({ store }: Exporting, organisationId: string): Promise<Db> {
  const db = await store.reports();
  if ((await purgedUntil(store.db, organisationId)) === 0) return db;
  const sizeIn = async (one: Db) => (await findNewestCheckpoint(one, organisationId))?.size ?? 0;
  const size = await sizeIn(store.db);
  for (let step = 0; step < STANDBY_STEPS; step++) {
    if ((await sizeIn(db)) >= size) return db;
    await pause(STANDBY_STEP_MS);
  }
  return store.db;
}

async function* groupsOf(
  broker: Exporting,
  organisationId: string,
  first: number,
): AsyncGenerator<{ lines: LogLine[]; size: number }> {
  const origin = await originOf(broker, organisationId);
  const db = await readerOf(broker, organisationId);
  const checkpoint = await findNewestCheckpoint(db, organisationId);
  const size = checkpoint?.size ?? 0;
  const begin = Math.min(first, size) - (Math.min(first, size) % TILE_WIDTH);
  const keys = await verifierKeys(broker, origin);
  const note = checkpoint ? noteOf(origin, checkpoint) : null;
  yield { lines: [{ type: 'log', origin, first: begin, size, checkpoint: note, keys }], size };
  for (let start = begin; start < size; start += TILE_WIDTH) {
    const index = start / TILE_WIDTH;
    const stored = await findEntries(db, organisationId, index);
    // The last tile may have grown beyond what the checkpoint covers.
    // Deleted rows are left out. A verifier reports them as missing, unless an event announces that their retention had expired (purge.ts).
    const entries = (stored ? entriesIn(stored) : []).slice(0, size - start);
    const lines: LogLine[] = (await rowsOfEntries(db, organisationId, entries, start)).map(logRow);
    const hashes = Buffer.concat(entries.map(({ hash }) => leafHash(hash))).toString('base64');
    yield { lines: [...lines, { type: 'tile', level: 0, index, hashes }], size };
    await setImmediate();
  }
  // All tiles of higher levels: rows before `first` are represented by their hashes.
  for (
    let level = 1, count = Math.floor(size / TILE_WIDTH);
    count > 0;
    level++, count = Math.floor(count / TILE_WIDTH)
  ) {
    for (let index = 0; index * TILE_WIDTH < count; index++) {
      const tile = await findTile(db, organisationId, level, index);
      const width = Math.min(TILE_WIDTH, count - index * TILE_WIDTH);
      const hashes = Buffer.from(tile?.hashes ?? []).subarray(0, width * 32);
      yield { lines: [{ type: 'tile', level, index, hashes: hashes.toString('base64') }], size };
    }
  }
}
