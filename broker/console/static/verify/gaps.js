// Rows that an export of a receipt log lacks: those that the broker deleted after the retention period according to logged events, and missing
// ones. The log does not prove who wrote an event: whoever writes to the database gets rows logged. The event's receipt proves it.
import { bytesOfBase64 } from './note.js';
import { TILE_WIDTH } from './tile-tree.js';

/**
 * A problem and its place: indexes of the first and last row. `changed`: the row is not what was logged. `unknown`: one of several rows,
 * undecidable because the hashes in the file are wrong as well. `hashes`: only the hashes in the file are wrong. `unchecked`: rows are absent, and
 * without the keys of receipts it cannot be verified that the broker deleted them.
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
  /** Bits of absent rows, by tile. @type {Map<number, Bits>} */
  #absent = new Map();
  /** Deletions claimed by `audit_purged` rows, by the tile that contains the row. @type {Map<number, Purge[]>} */
  #said = new Map();
  /** The claims of rows confirmed to be in the log, by the tile whose rows were deleted. @type {Map<number, { bits: Bits, index: number }[]>} */
  #purges = new Map();
  #isChecked;

  /** @param {boolean} isChecked whether receipts are checked with their keys */
  constructor(isChecked) {
    this.#isChecked = isChecked;
  }

  /** Records the deletions that a row with a receipt claims. They count once the row is confirmed to be in the log. @param {{ index: number, row: Record<string, unknown> }} line */
  readPurge({ index, row: { kind, reason, flags } }) {
    if (kind !== 'event' || reason !== 'audit_purged' || typeof flags !== 'string') return;
    listed(this.#said, Math.floor(index / TILE_WIDTH)).push({ index, purged: purgedIn(flags) });
  }

  /** Confirms that a row is in the log. @param {number} index */
  confirm(index) {
    this.#confirm(Math.floor(index / TILE_WIDTH), (purge) => purge.index === index);
  }

  /** Confirms that all present rows of a tile are in the log. @param {number} tile */
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

  /** Records that a row is absent. @param {number} index */
  add(index) {
    const tile = Math.floor(index / TILE_WIDTH);
    let bits = this.#absent.get(tile);
    if (!bits) {
      bits = new Uint8Array(TILE_WIDTH / 8);
      this.#absent.set(tile, bits);
    }
    setBit(bits, index % TILE_WIDTH);
  }

  /** Records the absent rows of a tile. @param {number} tile @param {Bits | undefined} bits */
  addTile(tile, bits) {
    if (bits) this.#absent.set(tile, bits);
  }

  /** Reports the missing rows, and returns how many absent rows were deleted according to a later event: an event can only cover rows before it. @param {Report} report @returns {number} */
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
      `Whether the broker deleted ${said.length} rows, from row ${said[0]} on, after their retention time is unknown without the key set of receipts (--receipt-keys): it shows who wrote the events that say so.`,
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
