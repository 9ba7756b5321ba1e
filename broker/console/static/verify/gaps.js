// Rows that an export of a receipt log does not have: those that the broker says were deleted when their time was over, and those that are
// missing. That an event is in the log says nothing of who wrote it: whoever writes to the database gets rows logged. Its receipt does.
import { bytesOfBase64 } from './note.js';
import { TILE_WIDTH } from './tile-tree.js';

/**
 * What is wrong, and where: indexes of the first and last row. `changed`: what stands there is not what was logged. `unknown`: rows among
 * which it is not known which, because the hashes of the file are wrong as well. `hashes`: only the hashes of the file are wrong. `unchecked`: rows
 * are not there, and whether the broker deleted them cannot be told without the keys of receipts.
 *
 * @typedef {'changed' | 'missing' | 'unchecked' | 'inserted' | 'moved' | 'unknown' | 'hashes' | 'forked' | 'truncated' | 'unsigned' | 'receipt' | 'no_receipt' | 'malformed'} ProblemKind
 * @typedef {{ kind: ProblemKind, first?: number, last?: number, detail: string }} LogProblem
 */
/** @typedef {(kind: ProblemKind, detail: string, first?: number, last?: number) => void} Report */
/** @typedef {{ index: number, purged: Record<string, unknown> }} Purge */
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
  /** What rows of `audit_purged` say, by the tile in which those stand. @type {Map<number, Purge[]>} */
  #said = new Map();
  /** What of it is of the log, by the tile of which it is said. @type {Map<number, { bits: Bits, index: number }[]>} */
  #purges = new Map();
  #isChecked;

  /** @param {boolean} isChecked whether receipts are checked with their keys */
  constructor(isChecked) {
    this.#isChecked = isChecked;
  }

  /** Takes down what a row with a receipt says was deleted. It counts when the row turns out to be of the log. @param {{ index: number, row: Record<string, unknown> }} line */
  readPurge({ index, row: { kind, reason, flags } }) {
    if (kind !== 'event' || reason !== 'audit_purged' || typeof flags !== 'string') return;
    listed(this.#said, Math.floor(index / TILE_WIDTH)).push({ index, purged: purgedIn(flags) });
  }

  /** A row is of the log. @param {number} index */
  confirm(index) {
    this.#confirm(Math.floor(index / TILE_WIDTH), (purge) => purge.index === index);
  }

  /** All rows of a tile that are there are of the log. @param {number} tile */
  confirmTile(tile) {
    this.#confirm(tile, () => true);
  }

  /** @param {number} tile @param {(purge: Purge) => boolean} isMeant */
  #confirm(tile, isMeant) {
    for (const { index, purged } of this.#said.get(tile)?.filter(isMeant) ?? [])
      for (const [named, text] of Object.entries(purged))
        if (typeof text === 'string' && /^[A-Za-z0-9+/]{43}=$/.test(text))
          listed(this.#purges, Number(named)).push({ bits: bytesOfBase64(text), index });
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

  /** Names the rows that are missing, and answers how many were deleted as the broker says, later: what is deleted was there. @param {Report} report @returns {number} */
  name(report) {
    /** @type {number[]} */
    const said = [];
    for (const [tile, bits] of [...this.#absent].sort(([a], [b]) => a - b)) {
      const end = (tile + 1) * TILE_WIDTH;
      const proofs = this.#purges.get(tile) ?? [];
      for (let index = tile * TILE_WIDTH; index < end; index++) {
        const at = index % TILE_WIDTH;
        if (!hasBit(bits, at)) continue;
        if (proofs.some((proof) => proof.index > index && hasBit(proof.bits, at))) said.push(index);
        else report('missing', `Row ${index} is missing.`, index);
      }
    }
    if (this.#isChecked || said.length === 0) return said.length;
    report(
      'unchecked',
      `Whether the broker deleted ${said.length} rows, from row ${said[0]} on, after their retention time cannot be told without the key set of receipts (--receipt-keys): it shows who wrote the events that say so.`,
      said[0],
      said.at(-1),
    );
    return 0;
  }
}

/** @template T @param {Map<number, T[]>} lists @param {number} key @returns {T[]} */
function listed(lists, key) {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
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
