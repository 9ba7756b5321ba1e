// Merkle trees of tiles (RFC 9162 section 2.1, C2SP tlog-tiles), with a digest function that may be asynchronous.

/** @typedef {(bytes: Uint8Array) => Uint8Array | Promise<Uint8Array>} Digest SHA-256 */

export const TILE_WIDTH = 256;

/** @param {number} tag @param {readonly Uint8Array[]} parts */
function tagged(tag, ...parts) {
  const bytes = new Uint8Array(1 + parts.reduce((sum, part) => sum + part.length, 0));
  bytes[0] = tag;
  let at = 1;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** @param {Digest} digest @param {Uint8Array} entry */
export const leafHash = (digest, entry) => digest(tagged(0, entry));

/** Returns the root over subtrees of equal size, of which the last may be smaller. @param {Digest} digest @param {readonly Uint8Array[]} hashes @returns {Promise<Uint8Array>} */
export async function rootOver(digest, hashes) {
  let level = hashes;
  while (level.length > 1) {
    const above = [];
    for (let at = 0; at < level.length; at += 2) {
      const [left, right] = [/** @type {Uint8Array} */ (level[at]), level[at + 1]];
      // A last hash without a neighbour moves up unchanged: it is the smaller subtree on the right.
      above.push(right === undefined ? left : await digest(tagged(1, left, right)));
    }
    level = above;
  }
  return level[0] ?? (await digest(new Uint8Array()));
}

/** @param {Uint8Array | undefined} a @param {Uint8Array | undefined} b */
export const same = (a, b) =>
  a !== undefined && b !== undefined && a.length === b.length && a.every((byte, at) => byte === b[at]);

/** Splits the bytes of a tile into hashes. @param {Uint8Array} bytes */
export const hashesIn = (bytes) =>
  Array.from({ length: Math.floor(bytes.length / 32) }, (_, at) => bytes.subarray(at * 32, at * 32 + 32));

/** Returns how many hashes a tile has in a tree of this size. @param {number} size @param {number} level @param {number} index */
export const widthOf = (size, level, index) =>
  Math.max(0, Math.min(TILE_WIDTH, Math.floor(size / TILE_WIDTH ** level) - index * TILE_WIDTH));
