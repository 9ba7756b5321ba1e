/** The Merkle tree compared with the recursive definitions of RFC 9162, and proofs with the verification of section 2.1. */
import { describe, expect, test } from 'vitest';
import {
  appendLeaves,
  consistencyProof,
  type Edge,
  EMPTY_ROOT,
  edgeTiles,
  inclusionProof,
  leafHash,
  rootOfEdge,
  TILE_WIDTH,
  type TileReader,
} from '../../broker/receipt-log/merkle.ts';
import { includes, isConsistent, mth, sha256 } from '../world/rfc9162.ts';

const entry = (at: number) => sha256(Buffer.from(`entry ${at}`));

/** A log in memory: tiles by level and index. */
function makeLog() {
  const tiles = new Map<string, readonly Uint8Array[]>();
  const edge: Edge = { size: 0, tiles: [] };
  const leaves: Buffer[] = [];
  const read: TileReader = async (level, index, width) => {
    const hashes = tiles.get(`${level} ${index}`)!;
    expect(hashes.length).toBeGreaterThanOrEqual(width);
    return hashes.slice(0, width);
  };
  return {
    edge,
    leaves,
    tiles,
    read,
    append: (count: number) => {
      const added = Array.from({ length: count }, (_, at) => leafHash(entry(leaves.length + at)));
      leaves.push(...added);
      for (const { level, index, hashes } of appendLeaves(edge, added)) tiles.set(`${level} ${index}`, hashes);
    },
  };
}

const SIZES = [1, 2, 3, 7, 8, 255, 256, 257, 511, 512, 513, 1000, 65_535, 65_536, 65_537];

describe('the Merkle tree', () => {
  test('has the root of RFC 9162 at every size, whatever batches the leaves are appended in', () => {
    const log = makeLog();
    const known = new Map<string, Buffer>();
    expect(Buffer.from(rootOfEdge(log.edge))).toEqual(Buffer.from(EMPTY_ROOT));
    for (const size of SIZES) {
      for (let left = size - log.leaves.length; left > 0; ) {
        const batch = Math.min(left, 1 + ((log.leaves.length * 7) % 1_024));
        log.append(batch);
        left -= batch;
      }
      expect(log.edge.size).toBe(size);
      expect(Buffer.from(rootOfEdge(log.edge)).equals(mth(log.leaves, size, 0, known)), String(size)).toBe(true);
    }
  });

  test('has the edge tiles of the example in tlog-tiles', () => {
    expect(edgeTiles(70_000)).toEqual([
      { level: 0, index: 273, width: 112 },
      { level: 1, index: 1, width: 17 },
      { level: 2, index: 0, width: 1 },
    ]);
    expect(edgeTiles(256)).toEqual([
      { level: 0, index: 1, width: 0 },
      { level: 1, index: 0, width: 1 },
    ]);
    const log = makeLog();
    log.append(70_000);
    expect([...log.tiles.keys()].filter((key) => key.startsWith('0 ')).length).toBe(274);
    expect(log.tiles.get('1 0')).toHaveLength(TILE_WIDTH);
    expect(log.tiles.get('2 0')).toHaveLength(1);
  });

  test('a proof of inclusion verifies for its leaf, and for no other', async () => {
    const log = makeLog();
    const known = new Map<string, Buffer>();
    log.append(70_000);
    for (const size of [1, 2, 5, 256, 257, 700, 65_537, 70_000])
      for (const index of new Set([0, 1, size >> 1, size - 2, size - 1].filter((at) => at >= 0 && at < size))) {
        const root = mth(log.leaves, size, 0, known);
        const proof = await inclusionProof(log.read, index, size);
        expect(includes(root, log.leaves[index]!, index, size, proof), `${index} of ${size}`).toBe(true);
        expect(includes(root, log.leaves[(index + 1) % 70_000]!, index, size, proof)).toBe(false);
      }
  });

  test('a proof of consistency verifies for its trees, and for no other', async () => {
    const log = makeLog();
    log.append(70_000);
    const sizes = [1, 2, 3, 255, 256, 257, 600, 65_536, 65_537, 70_000];
    const known = new Map<string, Buffer>();
    const roots = new Map(sizes.map((size) => [size, mth(log.leaves, size, 0, known)]));
    for (const first of sizes)
      for (const second of sizes.filter((size) => size >= first)) {
        const proof = await consistencyProof(log.read, first, second);
        const [a, b] = [roots.get(first)!, roots.get(second)!];
        expect(isConsistent(first, second, a, b, proof), `${first} to ${second}`).toBe(true);
        if (first !== second) expect(isConsistent(first, second, b, b, proof)).toBe(false);
      }
  });
});
