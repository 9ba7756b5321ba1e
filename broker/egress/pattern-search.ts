/** Many byte patterns looked for at once, in a time that hardly depends on how many they are. */

/** A pattern. `before`, `after`: one neighbouring base64 character belongs to it in part. */
export type Needle = { bytes: Buffer; before: boolean; after: boolean };

/** Where a pattern was found. */
export type Match = { at: number; needle: Needle };

/** How long the pieces are by which patterns are recognised. */
const PIECE = 4;
/** At most so many offsets of each pattern are kept; a text is looked at once in so many bytes. */
const MOST_STRIDE = 16;
/** 2 to this power bits say whether a piece may belong to a pattern. */
const FILTER_BITS = 13;

/**
 * A search by sampling: one piece of four bytes is looked at in every `stride` bytes. A pattern that stands anywhere has
 * one of its own first pieces at such a place, and those are in a table. Holds credentials in private fields only.
 */
export class PatternSearch {
  readonly #stride: number;
  readonly #filter = new Uint32Array(2 ** (FILTER_BITS - 5));
  readonly #places = new Map<number, { needle: Needle; offset: number }[]>();

  /** `needles`: at least one, each of at least four bytes. */
  constructor(needles: readonly Needle[]) {
    const shortest = Math.min(...needles.map(({ bytes }) => bytes.length));
    this.#stride = Math.min(MOST_STRIDE, shortest - PIECE + 1);
    for (const needle of needles) {
      for (let offset = 0; offset < this.#stride; offset++) {
        const piece = needle.bytes.readInt32LE(offset);
        const bit = bitOf(piece);
        this.#filter[bit >>> 5]! |= 1 << (bit & 31);
        const places = this.#places.get(piece);
        if (places === undefined) this.#places.set(piece, [{ needle, offset }]);
        else places.push({ needle, offset });
      }
    }
  }

  /** Whether one of the patterns is in the first `length` bytes. */
  has(bytes: Buffer, length: number): boolean {
    return this.#scan(bytes, length, undefined);
  }

  /** Every place of every pattern in the first `length` bytes. */
  all(bytes: Buffer, length: number): Match[] {
    const matches: Match[] = [];
    this.#scan(bytes, length, matches);
    return matches;
  }

  /** Ends at the first match when none are collected. */
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
      for (const { needle, offset } of places) {
        if (!isAt(bytes, length, at - offset, needle.bytes)) continue;
        if (matches === undefined) return true;
        matches.push({ at: at - offset, needle });
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
