/** Merkle trees over audit rows: hashes, tiles, and proofs (RFC 9162 section 2.1; tiles of height 8, C2SP tlog-tiles). */
import { hash } from 'node:crypto';

/** Hashes in a full tile. */
export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;

/** The root of a tree without leaves (RFC 9162 section 2.1.1). */
export const EMPTY_ROOT: Buffer = hash('sha256', '', 'buffer');

const HASH_BYTES = 32;

/** Reused buffers for the hash inputs: allocating a buffer for each hash takes as long as the hash. */
const leaf = Buffer.alloc(1 + HASH_BYTES, 0);
const node = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/** Converts through a binary string, which is more than twice as fast as a buffer for each hash. */
const sha256 = (bytes: Uint8Array): Buffer => Buffer.from(hash('sha256', bytes, 'binary'), 'binary');

/** Hash of a leaf. `entry`: entry of the log, which is the 32 bytes of a row's hash. */
export function leafHash(entry: Uint8Array): Buffer {
  if (entry.length !== HASH_BYTES) throw new Error(`An entry of ${entry.length} bytes is no hash of a row.`);
  leaf.set(entry, 1);
  return sha256(leaf);
}

/** Hash of an inner node over two hashes. */
function nodeHash(left: Uint8Array, right: Uint8Array): Buffer {
  node.set(left, 1);
  node.set(right, 1 + HASH_BYTES);
  return sha256(node);
}

/** Returns the largest power of two that is smaller than `count`, which is at least 2. */
function splitOf(count: number): number {
  let split = 1;
  while (split * 2 < count) split *= 2;
  return split;
}

/** Root over subtrees `start` to `end` (exclusive, at least one) in order; they have equal sizes, except that the last may be smaller. */
function rootOver(hashes: readonly Uint8Array[], start = 0, end = hashes.length): Uint8Array {
  if (end - start === 1) return hashes[start] as Uint8Array;
  const split = start + splitOf(end - start);
  return nodeHash(rootOver(hashes, start, split), rootOver(hashes, split, end));
}

/** The incomplete tiles at the right edge of a tree, by level, which the next leaves change. */
export type Edge = { size: number; tiles: Uint8Array[][] };

/** A tile after leaves were appended. */
export type ChangedTile = { level: number; index: number; hashes: readonly Uint8Array[] };

/**
 * Appends leaf hashes to the edge, in place. Returns every tile that changed, including those that became full; their hashes are valid until
 * the next append.
 */
export function appendLeaves(edge: Edge, leaves: readonly Uint8Array[]): ChangedTile[] {
  // Keyed by the list of hashes: a level gets a new list when its tile is full.
  const changed = new Map<readonly Uint8Array[], ChangedTile>();
  const push = (level: number, node: Uint8Array, leavesBefore: number): void => {
    edge.tiles[level] ??= [];
    const hashes = edge.tiles[level];
    hashes.push(node);
    if (!changed.has(hashes))
      changed.set(hashes, { level, index: Math.floor(leavesBefore / TILE_WIDTH ** (level + 1)), hashes });
    if (hashes.length < TILE_WIDTH) return;
    edge.tiles[level] = [];
    push(level + 1, rootOver(hashes), leavesBefore);
  };
  for (const leaf of leaves) {
    push(0, leaf, edge.size);
    edge.size++;
  }
  return [...changed.values()];
}

/** The root of the tree that has this edge. */
export function rootOfEdge({ tiles }: Edge): Uint8Array {
  let below: Uint8Array | undefined;
  for (const tile of tiles) {
    const hashes = below === undefined ? tile : [...tile, below];
    if (hashes.length > 0) below = rootOver(hashes);
  }
  return below ?? EMPTY_ROOT;
}

/** The tiles at the right edge of a tree of this size, one for each level that has any. */
export function edgeTiles(size: number): { level: number; index: number; width: number }[] {
  const tiles = [];
  for (let level = 0, count = size; count > 0; level++, count = Math.floor(count / TILE_WIDTH))
    tiles.push({ level, index: Math.floor(count / TILE_WIDTH), width: count % TILE_WIDTH });
  return tiles;
}

/** Reads the first `width` hashes of a tile. */
export type TileReader = (level: number, index: number, width: number) => Promise<readonly Uint8Array[]>;

/** Hash over the leaves from `start` up to `end` of a tree of `size` leaves. `start` is where a subtree begins. */
async function subtreeHash(read: TileReader, start: number, end: number, size: number): Promise<Uint8Array> {
  const count = end - start;
  const isPerfect = 2 ** Math.floor(Math.log2(count)) === count;
  if (!isPerfect) {
    const split = splitOf(count);
    return nodeHash(
      await subtreeHash(read, start, start + split, size),
      await subtreeHash(read, start + split, end, size),
    );
  }
  const level = Math.floor(Math.log2(count) / TILE_HEIGHT);
  const unit = TILE_WIDTH ** level;
  const first = start / unit;
  const index = Math.floor(first / TILE_WIDTH);
  const width = Math.min(TILE_WIDTH, Math.floor(size / unit) - index * TILE_WIDTH);
  const tile = await read(level, index, width);
  const at = first - index * TILE_WIDTH;
  return rootOver(tile, at, at + count / unit);
}

/** The audit path of a leaf in the tree of this size, from the leaf up (RFC 9162 section 2.1.3.1). */
export async function inclusionProof(read: TileReader, index: number, size: number): Promise<Uint8Array[]> {
  const path = async (start: number, end: number): Promise<Uint8Array[]> => {
    if (end - start === 1) return [];
    const split = start + splitOf(end - start);
    return index < split
      ? [...(await path(start, split)), await subtreeHash(read, split, end, size)]
      : [...(await path(split, end)), await subtreeHash(read, start, split, size)];
  };
  return await path(0, size);
}

/** Proof that the tree of `first` leaves is a prefix of the tree of `second` (RFC 9162 section 2.1.4.1). 0 < first <= second. */
export async function consistencyProof(read: TileReader, first: number, second: number): Promise<Uint8Array[]> {
  const path = async (start: number, end: number, isWhole: boolean): Promise<Uint8Array[]> => {
    if (first === end) return isWhole ? [] : [await subtreeHash(read, start, end, second)];
    const split = start + splitOf(end - start);
    return first <= split
      ? [...(await path(start, split, isWhole)), await subtreeHash(read, split, end, second)]
      : [...(await path(split, end, false)), await subtreeHash(read, start, split, second)];
  };
  return first === second ? [] : await path(0, second, true);
}
