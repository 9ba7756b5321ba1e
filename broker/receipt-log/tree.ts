/** The tree of an organisation's receipt log in the store: its right edge, what is appended, and its tiles. */
import { present } from '../policy/present.ts';
import { findEntries, findTile, putEntries, putTile } from '../store/receipt-logs.ts';
import type { LogPendingTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { appendLeaves, type Edge, edgeTiles, leafHash, TILE_WIDTH, type TileReader } from './merkle.ts';

const HASH_BYTES = 32;
const ID_BYTES = 16;

/** What the log holds of a row. `hash`: the 32 bytes of its `row_hash`, which is the entry of the log. */
export type Entry = { id: string; hash: Buffer };

/** The right edge of a log, and the entries of its last tile, with which it goes on. */
export type LogEdge = Edge & { entries: Entry[]; lastAt: number };

const idBytes = (uuid: string): Buffer => Buffer.from(uuid.replaceAll('-', ''), 'hex');

function uuidOf(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const hashesIn = (bytes: Uint8Array): Buffer[] => {
  const all = Buffer.from(bytes);
  return Array.from({ length: all.length / HASH_BYTES }, (_, at) =>
    all.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
};

/** The entries of a stored tile in their order. */
export function entriesIn({ ids, row_hashes }: { ids: Uint8Array; row_hashes: Uint8Array }): Entry[] {
  const all = Buffer.from(ids);
  return hashesIn(row_hashes).map((hash, at) => ({
    id: uuidOf(all.subarray(at * ID_BYTES, (at + 1) * ID_BYTES)),
    hash,
  }));
}

/** Reads the edge of a log of `size` entries. */
export async function readEdge(db: Db, organisationId: string, size: number): Promise<LogEdge> {
  const edge: LogEdge = { size, tiles: [], entries: [], lastAt: 0 };
  // Also of a full tile: the time does not fall from one tile to the next.
  if (size > 0)
    edge.lastAt = present(
      await findEntries(db, organisationId, Math.floor((size - 1) / TILE_WIDTH)),
      'last entries of the receipt log',
    ).last_at;
  for (const { level, index, width } of edgeTiles(size)) {
    if (width === 0) {
      edge.tiles[level] = [];
    } else if (level === 0) {
      edge.entries = entriesIn(present(await findEntries(db, organisationId, index), 'entries at the edge of the log'));
      edge.tiles[0] = edge.entries.map(({ hash }) => leafHash(hash));
    } else {
      const tile = present(await findTile(db, organisationId, level, index), 'tile at the edge of the log');
      edge.tiles[level] = hashesIn(tile.hashes);
    }
  }
  return edge;
}

/** Appends rows in this order, to the edge in place and in the store, in a transaction that moves the head as well. */
export async function appendRows(
  db: Db,
  organisationId: string,
  edge: LogEdge,
  rows: readonly LogPendingTable[],
): Promise<void> {
  const entries = rows.map(({ row_id, row_hash }) => ({ id: row_id, hash: Buffer.from(row_hash, 'hex') }));
  let index = Math.floor(edge.size / TILE_WIDTH);
  for (const [at, entry] of entries.entries()) {
    edge.entries.push(entry);
    edge.lastAt = Math.max(edge.lastAt, present(rows[at], 'row').finished_at);
    const isFull = edge.entries.length === TILE_WIDTH;
    if (!isFull && at < entries.length - 1) continue;
    await putEntries(db, {
      organisation_id: organisationId,
      tile_index: index,
      ids: Buffer.concat(edge.entries.map(({ id }) => idBytes(id))),
      row_hashes: Buffer.concat(edge.entries.map(({ hash }) => hash)),
      last_at: edge.lastAt,
    });
    if (!isFull) continue;
    edge.entries = [];
    index++;
  }
  const changed = appendLeaves(
    edge,
    entries.map(({ hash }) => leafHash(hash)),
  );
  // Those of level 0 are made of the entries when they are read.
  for (const { level, index: tile, hashes } of changed)
    if (level > 0)
      await putTile(db, { organisation_id: organisationId, level, tile_index: tile, hashes: Buffer.concat(hashes) });
}

/** Reads tiles of a log, each once. */
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

/** All hashes of a tile so far, or undefined. */
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
