/** The tree of an organisation's receipt log in the store: its right edge, appending, and its tiles. */
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { unpooled } from '../runtime/unpooled.ts';
import type { PendingRows } from '../store/log-pending.ts';
import { findEntries, findTile, putEntries, putTile } from '../store/receipt-logs.ts';
import type { Db } from '../store/store.ts';
import type { LogEntriesTable } from '../store/tables/receipt-log.ts';
import { appendLeaves, type Edge, edgeTiles, leafHash, rootOfEdge, TILE_WIDTH, type TileReader } from './merkle.ts';

const HASH_BYTES = 32;
const ID_BYTES = 16;

/** An entry of the log for one row. `hash`: the 32 bytes of its `row_hash`, which are the leaf's content. */
export type Entry = { id: string; hash: Buffer };

/** Returns the bytes of concatenated uuids. */
const idBytes = (uuids: string): Buffer => Buffer.from(uuids.replaceAll('-', ''), 'hex');

/** The right edge of a log, with the concatenated ids and row hashes of its last tile, to which the next rows are appended. */
export type LogEdge = Edge & { ids: Buffer; rowHashes: Buffer; lastAt: number };

function uuidOf(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const hashesIn = (bytes: Uint8Array): Buffer[] => slicesOf(Buffer.from(bytes));

const slicesOf = (all: Buffer): Buffer[] =>
  Array.from({ length: all.length / HASH_BYTES }, (_, at) => all.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES));

/** Returns the entries of a stored tile in order. */
export function entriesIn({ ids, row_hashes }: { ids: Uint8Array; row_hashes: Uint8Array }): Entry[] {
  const all = Buffer.from(ids);
  return hashesIn(row_hashes).map((hash, at) => ({
    id: uuidOf(all.subarray(at * ID_BYTES, (at + 1) * ID_BYTES)),
    hash,
  }));
}

/** The stored data of a log differs from what was written: nothing may be appended to it. */
export class DamagedLog extends Error {}

/** Reads the edge of a log with `size` entries and this `root` (base64). Throws DamagedLog when the root differs. */
export async function readEdge(db: Db, organisationId: string, size: number, root: string): Promise<LogEdge> {
  const edge: LogEdge = { size, tiles: [], ids: Buffer.alloc(0), rowHashes: Buffer.alloc(0), lastAt: 0 };
  if (size === 0) return edge;
  const whole = <T>(found: T | undefined): T => {
    if (found === undefined) throw new DamagedLog('A tile at the edge of the receipt log is missing.');
    return found;
  };
  // Also when the last tile is full: times do not decrease from tile to tile, except after a clock that was ahead.
  edge.lastAt = whole(await findEntries(db, organisationId, Math.floor((size - 1) / TILE_WIDTH))).last_at;
  for (const { level, index, width } of edgeTiles(size)) {
    if (width === 0) {
      edge.tiles[level] = [];
    } else if (level === 0) {
      const entries = whole(await findEntries(db, organisationId, index));
      edge.ids = Buffer.from(entries.ids);
      edge.rowHashes = Buffer.from(entries.row_hashes);
      edge.tiles[0] = hashesIn(entries.row_hashes).map(leafHash);
    } else {
      edge.tiles[level] = hashesIn(whole(await findTile(db, organisationId, level, index)).hashes);
    }
    if (edge.tiles[level]?.length !== width)
      throw new DamagedLog('A tile at the edge of the receipt log has another length than it was written with.');
  }
  // Otherwise a checkpoint would be signed that contradicts the previous one.
  if (Buffer.from(rootOfEdge(edge)).toString('base64') !== root)
    throw new DamagedLog('The tiles at the edge of the receipt log have another root than its head.');
  return edge;
}

/** Appends rows in this order, to the edge in place and to the store, in a transaction that also moves the head. `now`: by the store's clock. */
export async function appendRows(
  db: Db,
  organisationId: string,
  edge: LogEdge,
  pending: readonly PendingRows[],
  now: Instant,
): Promise<void> {
  // All rows together: one by one takes several times as long.
  const added = Buffer.from(pending.map((rows) => rows.row_hashes).join(''), 'hex');
  const ids = Buffer.concat([edge.ids, idBytes(pending.map((rows) => rows.ids).join(''))]);
  const rowHashes = Buffer.concat([edge.rowHashes, added]);
  const before = edge.size % TILE_WIDTH;
  const count = pending.reduce((sum, { rows }) => sum + rows, before);
  if (ids.length !== count * ID_BYTES || rowHashes.length !== count * HASH_BYTES)
    throw new DamagedLog('Rows that wait for the receipt log are not whole.');
  const entries: LogEntriesTable[] = [];
  let taken = 0;
  let covered = before;
  for (let start = 0; start < count; start += TILE_WIDTH) {
    const end = Math.min(count, start + TILE_WIDTH);
    // A time from a clock that was ahead is not passed on to later tiles: until then they would seem recent, and be searched for earlier rows.
    if (edge.lastAt > now && (start > 0 || before === 0))
      edge.lastAt = covered > start ? present(pending[taken - 1], 'rows').last_at : 0;
    for (; covered < end; taken++) {
      const { rows, last_at } = present(pending[taken], 'rows');
      covered += rows;
      edge.lastAt = Math.max(edge.lastAt, last_at);
    }
    entries.push({
      organisation_id: organisationId,
      tile_index: Math.floor((edge.size + start) / TILE_WIDTH),
      ids: ids.subarray(start * ID_BYTES, end * ID_BYTES),
      row_hashes: rowHashes.subarray(start * HASH_BYTES, end * HASH_BYTES),
      last_at: edge.lastAt,
    });
  }
  await putEntries(db, entries);
  const rest = count - (count % TILE_WIDTH);
  edge.ids = ids.subarray(rest * ID_BYTES);
  edge.rowHashes = rowHashes.subarray(rest * HASH_BYTES);
  const changed = appendLeaves(edge, hashesIn(added).map(leafHash));
  // Tiles of level 0 are computed from the entries when they are read.
  for (const { level, index: tile, hashes } of changed)
    if (level > 0)
      await putTile(db, { organisation_id: organisationId, level, tile_index: tile, hashes: Buffer.concat(hashes) });
  compact(edge);
}

/** Edges are cached: copies what they contain, so that they keep neither the batch nor, for each hash of 32 bytes, a pool of Buffers alive. */
function compact(edge: LogEdge): void {
  edge.ids = unpooled(edge.ids);
  edge.rowHashes = unpooled(edge.rowHashes);
  edge.tiles = edge.tiles.map((hashes) => slicesOf(unpooled(Buffer.concat(hashes))));
}

/** Returns a reader of a log's tiles that reads each tile only once. */
export function tileReader(db: Db, organisationId: string): TileReader {
  const read = new Map<string, readonly Uint8Array[]>();
  return async (level, index, width) => {
    const key = `${level} ${index}`;
    const hashes = read.get(key) ?? (await tileHashes(db, organisationId, level, index));
    if (hashes === undefined || hashes.length < width) throw new Error(`Tile ${index} of level ${level} is missing.`);
    read.set(key, hashes);
    return hashes.slice(0, width);
  };
}

/** Returns all hashes that a tile has so far; undefined when there is no such tile. */
export async function tileHashes(
  db: Db,
  organisationId: string,
  level: number,
  index: number,
): Promise<Buffer[] | undefined> {
  if (level > 0) {
    const tile = await findTile(db, organisationId, level, index);
    return tile && hashesIn(tile.hashes);
  }
  const entries = await findEntries(db, organisationId, index);
  return entries && hashesIn(entries.row_hashes).map(leafHash);
}
