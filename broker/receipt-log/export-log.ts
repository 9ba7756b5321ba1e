/** The receipt log as a file that anybody can check offline: rows in their order, tiles, and the checkpoint that covers them. */
import { setImmediate } from 'node:timers/promises';
import type { Broker } from '../broker.ts';
import { findEntries, findNewestCheckpoint, findTile } from '../store/receipt-logs.ts';
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

/**
 * The lines of an export up to the newest checkpoint, in groups of a tile. `first`: the index of the first row, rounded down to the
 * beginning of its tile.
 */
export async function* exportLog(
  broker: Pick<Broker, 'store' | 'baseUrl'>,
  organisationId: string,
  first: number,
): AsyncGenerator<LogLine[]> {
  const db = await broker.store.reports();
  const origin = await originOf(broker, organisationId);
  const checkpoint = await findNewestCheckpoint(db, organisationId);
  const size = checkpoint?.size ?? 0;
  const begin = Math.min(first, size) - (Math.min(first, size) % TILE_WIDTH);
  const keys = await verifierKeys(broker, origin);
  const note = checkpoint ? noteOf(origin, checkpoint) : null;
  yield [{ type: 'log', origin, first: begin, size, checkpoint: note, keys }];
  for (let start = begin; start < size; start += TILE_WIDTH) {
    const index = start / TILE_WIDTH;
    const stored = await findEntries(db, organisationId, index);
    // Of the last tile there may be more by now than the checkpoint covers.
    // A row that is not there any more is left out, and named by whoever verifies, unless an event says that its time was over (purge.ts).
    const entries = (stored ? entriesIn(stored) : []).slice(0, size - start);
    const lines: LogLine[] = (await rowsOfEntries(db, organisationId, entries, start)).map(logRow);
    const hashes = Buffer.concat(entries.map(({ hash }) => leafHash(hash))).toString('base64');
    yield [...lines, { type: 'tile', level: 0, index, hashes }];
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
      yield [{ type: 'tile', level, index, hashes: hashes.toString('base64') }];
    }
  }
}
