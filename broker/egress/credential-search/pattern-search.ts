// biome-ignore-all lint/style/noNonNullAssertion: typed arrays and buffers, read within their bounds; a check per byte would cost on every answer.
/** Searches for many byte patterns in one pass; the time hardly depends on their number. */

/** A pattern. `before`, `after`: whether the adjacent base64 character partly belongs to it. */
export type Pattern = { bytes: Buffer; before: boolean; after: boolean };

/** A match and its position. */
export type Match = { at: number; pattern: Pattern };

/** Length of a sample in bytes. */
const PIECE = 4;
/** Upper bound of the stride: how many offsets of each pattern are indexed, and the distance between samples. */
const MAX_STRIDE = 16;
/** Log2 of the size, in bits, of the filter that rejects samples of no pattern. */
const FILTER_BITS = 13;

/**
 * Search by sampling: one sample of four bytes is taken every `stride` bytes. For every occurrence of a pattern, one of its first `stride`
 * offsets coincides with a sample; the samples of these offsets are in a hash table. Contains credentials, in private fields only.
 */
export class PatternSearch {
  readonly #stride: number;
  readonly #filter = new Uint32Array(2 ** (FILTER_BITS - 5));
  readonly #places = new Map<number, { pattern: Pattern; offset: number }[]>();

  /** `patterns`: at least one, each of at least four bytes. */
  constructor(patterns: readonly Pattern[]) {
    const shortest = Math.min(...patterns.map(({ bytes }) => bytes.length));
    this.#stride = Math.min(MAX_STRIDE, shortest - PIECE + 1);
    for (const pattern of patterns) {
      for (let offset = 0; offset < this.#stride; offset++) {
        const piece = pattern.bytes.readInt32LE(offset);
        const bit = bitOf(piece);
        this.#filter[bit >>> 5]! |= 1 << (bit & 31);
        const places = this.#places.get(piece);
        if (places === undefined) this.#places.set(piece, [{ pattern, offset }]);
        else places.push({ pattern, offset });
      }
    }
  }

  /** Whether the first `length` bytes contain a pattern. */
  has(bytes: Buffer, length: number): boolean {
    return this.#scan(bytes, length, undefined);
  }

  /** All matches in the first `length` bytes. */
  all(bytes: Buffer, length: number): Match[] {
    const matches: Match[] = [];
    this.#scan(bytes, length, matches);
    return matches;
  }

  /** Stops at the first match when `matches` is undefined. */
  #scan(bytes: Buffer, length: number, matches: Match[] | undefined): boolean {
    const stride = this.#stride;
    const filter = this.#filter;
    const last = length - PIECE;
    for (let at = 0; at <= last; at += stride) {
      const piece = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
      const bit = bitOf(piece);
      if ((filter[bit >>> 5]! & (1 << (bit & 31))) === 0) continue;
      const places = this.#places.get(piece);
      if (places === undefined) continue;
      for (const { pattern, offset } of places) {
        if (!isAt(bytes, length, at - offset, pattern.bytes)) continue;
        if (matches === undefined) return true;
        matches.push({ at: at - offset, pattern });
      }
    }
    return matches !== undefined && matches.length > 0;
  }
}

/** Multiplicative hashing (Knuth): the upper bits of a product with the golden ratio. */
function bitOf(piece: number): number {
  return Math.imul(piece, 0x9e3779b1) >>> (32 - FILTER_BITS);
}

function isAt(bytes: Buffer, length: number, at: number, pattern: Buffer): boolean {
  if (at < 0 || at + pattern.length > length) return false;
  for (let i = 0; i < pattern.length; i++) if (bytes[at + i] !== pattern[i]) return false;
  return true;
}
