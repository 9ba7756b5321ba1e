// Parses the lines of a receipt log export strictly. The file's author controls every byte of it.
import { isBase64 } from './note.js';
import { TILE_WIDTH } from './tile-tree.js';

/** @typedef {{ type: 'log', origin: string, first: number, size: number, checkpoint: string | null, keys: string[] }} Header */
/** @typedef {{ type: 'row', index: number, row: Record<string, unknown>, row_hash: unknown, receipt: string | null }} RowLine */
/** @typedef {{ type: 'tile', level: number, index: number, hashes: string }} TileLine */
/** @typedef {Record<string, unknown>} Members */

/** The columns of a row, in the order in which every version of the broker writes them. */
export const COLUMNS = [
  'organisation_id',
  'id',
  'kind',
  'created_at',
  'finished_at',
  'agent_id',
  'agent_public_id',
  'platform_id',
  'connection_id',
  'scope',
  'method',
  'path',
  'result',
  'reason',
  'detail',
  'decision',
  'approval_id',
  'session_id',
  'agent_reason',
  'violating',
  'upstream_status',
  'flags',
  'pii',
  'correlation_id',
];

/** The allowed members of each line type, in order: a verifier would otherwise vouch for members that it did not check. */
const MEMBERS = {
  log: ['type', 'origin', 'first', 'size', 'checkpoint', 'keys'],
  row: ['type', 'index', 'row', 'row_hash', 'receipt'],
  tile: ['type', 'level', 'index', 'hashes'],
};

/** Maximum length of a line in characters: more than a hundred times the longest row. */
export const MAX_LINE = 16 * 2 ** 20;

/**
 * Splits a stream at line feeds only: rows may contain other separators, such as U+2028. A line longer than MAX_LINE is returned as its beginning,
 * longer than MAX_LINE, too; the rest is skipped.
 *
 * @param {ReadableStream<string>} text a stream, since exports are large
 */
export async function* linesOf(text) {
  let rest = '';
  let isPassedOver = false;
  const reader = text.getReader();
  for (;;) {
    const { done, value = '' } = await reader.read();
    // Only the new chunk is searched: the text read before has no line feed, and searching it again would take quadratic time in the length of a line.
    const lines = value.split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      if (!isPassedOver) yield rest + line;
      [rest, isPassedOver] = ['', false];
    }
    if (!isPassedOver) rest += last;
    if (rest.length > MAX_LINE) {
      yield rest;
      [rest, isPassedOver] = ['', true];
    }
    if (done) break;
  }
  if (!isPassedOver) yield rest;
}

/**
 * Parses a line; undefined when it is not a line of an export.
 *
 * @param {string} text @returns {Header | RowLine | TileLine | undefined}
 */
export function lineIn(text) {
  if (text.length > MAX_LINE) return undefined;
  const line = objectIn(text);
  // Duplicate members and rounded numbers would have other values for other parsers, so the text has to equal its re-serialised form.
  if (line === undefined || JSON.stringify(line) !== text.trim()) return undefined;
  const { type } = line;
  const isOne =
    (type === 'log' && hasJust(line, MEMBERS.log) && isHeader(line)) ||
    (type === 'row' && hasJust(line, MEMBERS.row) && isRow(line)) ||
    (type === 'tile' && hasJust(line, MEMBERS.tile) && isTile(line));
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

/** @param {Members} value @param {readonly string[]} names */
function hasJust(value, names) {
  const found = Object.keys(value);
  return found.length === names.length && names.every((name, at) => name === found[at]);
}

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
  isIndex(index) && isObject(row) && hasJust(row, COLUMNS) && (receipt === null || typeof receipt === 'string');

/** @param {Members} line */
const isTile = ({ level, index, hashes }) =>
  isIndex(level) && isIndex(index) && typeof hashes === 'string' && isBase64(hashes);
