// Rows that an export of a receipt log does not have: those that the log itself says were deleted when their time was over, and those that
// are missing.
import { bytesOfBase64 } from './note.js';
import { TILE_WIDTH } from './tile-tree.js';

/**
 * What is wrong, and where: indexes of the first and last row. `changed`: what stands there is not what was logged. `unknown`: rows among
 * which it is not known which, because the hashes of the file are wrong as well. `hashes`: only the hashes of the file are wrong.
 *
 * @typedef {'changed' | 'missing' | 'inserted' | 'moved' | 'unknown' | 'hashes' | 'forked' | 'truncated' | 'unsigned' | 'receipt' | 'malformed'} ProblemKind
 * @typedef {{ kind: ProblemKind, first?: number, last?: number, detail: string }} LogProblem
 */
/** @typedef {(kind: ProblemKind, detail: string, first?: number, last?: number) => void} Report */
/** @typedef {Uint8Array} Bits of a tile: row `i` is bit `i % 8`, from the lowest, of byte `i / 8` */

/** @param {Bits} bits @param {number} at */
export const setBit = (bits, at) => {
  bits[at >> 3] = Number(bits[at >> 3]) | (1 << (at & 7));
};

/** @param {Bits | undefined} bits @param {number} at */
const hasBit = (bits, at) => bits !== undefined && (Number(bits[at >> 3]) & (1 << (at & 7))) !== 0;

export class Gaps {
  /** By tile. @type {Map<number, Bits>} */
  #absent = new Map();
  /** By tile: what rows of `audit_purged` say, and where those stand. @type {Map<number, { bits: Bits, index: number }[]>} */
  #purges = new Map();

  /** Takes down what a row says was deleted. @param {Record<string, unknown>} line @param {number} index where the row stands */
  readPurge({ row }, index) {
    const { kind, reason, flags } = /** @type {Record<string, unknown>} */ (row ?? {});
    if (kind !== 'event' || reason !== 'audit_purged' || typeof flags !== 'string') return;
    for (const [tile, text] of Object.entries(purgedIn(flags))) {
      const bits = typeof text === 'string' && /^[A-Za-z0-9+/]{43}=$/.test(text) ? bytesOfBase64(text) : undefined;
      const number = Number(tile);
      if (!bits || !Number.isSafeInteger(number)) continue;
      const known = this.#purges.get(number);
      if (known) known.push({ bits, index });
      else this.#purges.set(number, [{ bits, index }]);
    }
  }

  /** A row is not there. @param {number} index */
  add(index) {
    const tile = Math.floor(index / TILE_WIDTH);
    let bits = this.#absent.get(tile);
    if (!bits) {
      bits = new Uint8Array(TILE_WIDTH / 8);
      this.#absent.set(tile, bits);
    }
    setBit(bits, index % TILE_WIDTH);
  }

  /** Rows of a tile are not there. @param {number} tile @param {Bits | undefined} bits */
  addTile(tile, bits) {
    if (bits) this.#absent.set(tile, bits);
  }

  /**
   * Names the rows that are missing, and answers how many were deleted as the log says. A row that is not what was logged proves
   * nothing, nor does one of before: what is deleted was there.
   *
   * @param {readonly LogProblem[]} problems so far @param {Report} report @returns {number}
   */
  name(problems, report) {
    const spans = problems.flatMap(({ first, last = first }) =>
      first === undefined ? [] : { first, last: Number(last) },
    );
    const isDoubtful = (/** @type {number} */ index) =>
      spans.some(({ first, last }) => first <= index && index <= last);
    let purged = 0;
    for (const [tile, bits] of [...this.#absent].sort(([a], [b]) => a - b)) {
      const end = (tile + 1) * TILE_WIDTH;
      const proofs = (this.#purges.get(tile) ?? []).filter(({ index }) => !isDoubtful(index));
      for (let index = tile * TILE_WIDTH; index < end; index++) {
        const at = index % TILE_WIDTH;
        if (!hasBit(bits, at)) continue;
        if (proofs.some((proof) => proof.index > index && hasBit(proof.bits, at))) purged++;
        else report('missing', `Row ${index} is missing.`, index);
      }
    }
    return purged;
  }
}

/** @param {string} flags @returns {Record<string, unknown>} */
function purgedIn(flags) {
  try {
    const purged = JSON.parse(flags)?.change?.purged;
    return typeof purged === 'object' && purged !== null ? purged : {};
  } catch {
    return {};
  }
}
