// The lines of an export of a receipt log, and what each has to be. Whoever made the file chose every byte of it.
import { isBase64 } from './note.js';
import { TILE_WIDTH } from './tile-tree.js';

/** @typedef {{ type: 'log', origin: string, first: number, size: number, checkpoint: string | null, keys: string[] }} Header */
/** @typedef {{ type: 'row', index: number, row: Record<string, unknown>, row_hash: unknown, receipt: string | null }} RowLine */
/** @typedef {{ type: 'tile', level: number, index: number, hashes: string }} TileLine */
/** @typedef {Record<string, unknown>} Members */

/**
 * Splits at line feeds alone: rows may hold other separators, as U+2028, as they are.
 *
 * @param {ReadableStream<string>} text read as a stream: exports are large
 */
export async function* linesOf(text) {
  let rest = '';
  const reader = text.getReader();
  for (;;) {
    const { done, value = '' } = await reader.read();
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (done) break;
  }
  yield rest;
}

/**
 * What a line says; undefined: it is none of an export.
 *
 * @param {string} text @returns {Header | RowLine | TileLine | undefined}
 */
export function lineIn(text) {
  const line = objectIn(text);
  // A member that stands there twice, or a number that is rounded, is another one to other readers.
  if (line === undefined || JSON.stringify(line) !== text.trim()) return undefined;
  const { type } = line;
  const isOne = type === 'log' ? isHeader(line) : type === 'row' ? isRow(line) : type === 'tile' ? isTile(line) : false;
  return isOne ? /** @type {Header | RowLine | TileLine} */ (/** @type {unknown} */ (line)) : undefined;
}

/** @param {string} text @returns {Members | undefined} */
export function objectIn(text) {
  try {
    const value = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @param {unknown} value @returns {value is Members} */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {unknown} value */
const isIndex = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

/** @param {Members} line */
const isHeader = ({ origin, first, size, checkpoint, keys }) =>
  typeof origin === 'string' &&
  isIndex(size) &&
  isIndex(first) &&
  Number(first) % TILE_WIDTH === 0 &&
  Number(first) <= Number(size) &&
  (checkpoint === null || typeof checkpoint === 'string') &&
  Array.isArray(keys);

/** @param {Members} line */
const isRow = ({ index, row, receipt }) =>
  isIndex(index) && isObject(row) && (receipt === null || typeof receipt === 'string');

/** @param {Members} line */
const isTile = ({ level, index, hashes }) =>
  isIndex(level) && isIndex(index) && typeof hashes === 'string' && isBase64(hashes);
