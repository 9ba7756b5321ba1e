/** The receipt log as a file that anybody can check offline: rows in their order, tiles, and the checkpoint that covers them. */
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
/** The hashes of a tile (C2SP tlog-tiles), one after the other in base64. */
export type LogTile = { type: 'tile'; level: number; index: number; hashes: string };
export type LogLine = LogHeader | LogRow | LogTile;

type Exporting = Pick<Broker, 'store' | 'storeClock' | 'vault' | 'baseUrl'>;

/** How long a hold lasts without being renewed: whoever reads may be slow. */
const HOLD_MS = 10 * 60_000;
const RENEW_MS = 60_000;
/** An export that takes longer holds nothing any more. */
const LONGEST_MS = 24 * 3600 * 1000;
/** A standby is waited for in these steps, as far as it may be behind. */
const STANDBY_STEP_MS = 200;
const STANDBY_STEPS = 50;

/**
 * The lines of an export up to the newest checkpoint, in groups of a tile. `first`: the index of the first row, rounded down to the
 * beginning of its tile. While it is under way no rows are deleted but those of which the checkpoint proves it (purge.ts). Throws when that
 * cannot be held any longer.
 */
export async function* exportLog(broker: Exporting, organisationId: string, first: number): AsyncGenerator<LogLine[]> {
  const { db } = broker.store;
  const hold = { organisationId, id: uuidv4() };
  const until = () => broker.storeClock.now() + HOLD_MS;
  // Before the checkpoint is chosen: what a later one proves deleted stays from here on.
  await putHold(db, hold, until());
  try {
    const began = performance.now();
    let renewedAt = Number.NEGATIVE_INFINITY;
    for await (const { lines, size } of groupsOf(broker, organisationId, first)) {
      if (performance.now() - renewedAt >= RENEW_MS) {
        renewedAt = performance.now();
        const isLate = renewedAt - began > LONGEST_MS;
        if (isLate || !(await renewHold(db, hold, { size, until: until() })))
          throw new Error('The export took too long: rows that it has not reached may be deleted. Ask for it again.');
      }
      yield lines;
    }
  } finally {
    // It ends by itself where that fails.
    await dropHold(db, hold).catch(() => {});
  }
}

/** What is read: a standby, where rows were deleted once it has the newest checkpoint, which proves it. */
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
    // Of the last tile there may be more by now than the checkpoint covers.
    // A row that is not there any more is left out, and named by whoever verifies, unless an event says that its time was over (purge.ts).
    const entries = (stored ? entriesIn(stored) : []).slice(0, size - start);
    const lines: LogLine[] = (await rowsOfEntries(db, organisationId, entries, start)).map(logRow);
    const hashes = Buffer.concat(entries.map(({ hash }) => leafHash(hash))).toString('base64');
    yield { lines: [...lines, { type: 'tile', level: 0, index, hashes }], size };
    await setImmediate();
  }
  // All of them: what stands before `first` is known by its hashes.
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
