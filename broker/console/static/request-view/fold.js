// Decides how much of a request's body is laid out at first. Folded parts are counted: nothing can be approved that was never shown.

/** Rows: a body up to this size is laid out completely; of a larger body each part that is small. */
const WHOLE = 200;
const SMALL = 40;
/** Number of members of a larger part shown at first, and added for each press of the button. */
const FIRST = 30;
export const MORE = 200;
/** Characters: longer texts and names start folded. */
const LONG = 1_000;
/** Rows: up to this size all parts can be opened together; a larger body is shown as text. */
const MAX_ROWS = 1_500;
const MAX_CHARACTERS = 60_000;

/** Number of recipients shown at first. */
export const FIRST_RECIPIENTS = 12;

/** Opens all parts. */
export const EVERYTHING = Symbol('everything');

/** @typedef {ReturnType<typeof readBody>} Reader */
/** How much of each part is open, by path. @typedef {Map<string, number | true>} Opened */
/** @typedef {{ kind: 'text', path: string, value: string, folded: boolean, size?: undefined }} TextNode */
/** @typedef {{ kind: 'plain', path: string, value: unknown, size?: undefined }} PlainNode */
/** @typedef {{ kind: 'list' | 'object', path: string, size: number, members: Member[] }} PartNode */
/** @typedef {TextNode | PlainNode | PartNode} Node */
/** @typedef {{ name: string, namePath: string, nameFolded: boolean, value: Node }} Member */

/**
 * Computes how many rows each part takes when everything in it is open.
 *
 * @param {unknown} value
 * @param {Map<object, number>} weights
 */
function weigh(value, weights) {
  if (value === null || typeof value !== 'object') return 1;
  let sum = 1;
  for (const member of Array.isArray(value) ? value : Object.values(value)) sum += weigh(member, weights);
  weights.set(value, sum);
  return sum;
}

/**
 * Returns a reader of one body. `text`: its JSON, indented.
 *
 * @param {unknown} body
 */
export function readBody(body) {
  /** @type {Map<object, number>} */
  const weights = new Map();
  const rows = weigh(body, weights);
  const text = JSON.stringify(body, null, 2);
  return { body, rows, weights, text, tooMuch: rows > MAX_ROWS || text.length > MAX_CHARACTERS };
}

/**
 * Returns the tree to lay out, and how many of its parts are folded. `opened`: by path (a JSON pointer; with `#` at its end for a member's name)
 * the number of shown members of a part, or true for a text; or EVERYTHING.
 *
 * @param {Reader} reader
 * @param {Opened | typeof EVERYTHING} opened
 */
export function layOut({ body, rows, weights }, opened) {
  const all = opened === EVERYTHING;
  /** @type {Opened} */
  const given = opened instanceof Map ? opened : new Map();
  let folds = 0;
  const folded = (/** @type {string} */ text, /** @type {string} */ path) => {
    const long = text.length > LONG && !all && !given.has(path);
    if (long) folds++;
    return long;
  };
  /** @type {(value: unknown, path: string, depth: number) => Node} */
  const lay = (value, path, depth) => {
    if (typeof value === 'string') return { kind: 'text', path, value, folded: folded(value, path) };
    if (value === null || typeof value !== 'object') return { kind: 'plain', path, value };
    const list = Array.isArray(value);
    const entries = Object.entries(value);
    const size = entries.length;
    const whole = all || rows <= WHOLE || (weights.get(value) ?? 0) <= SMALL;
    const shown = whole ? size : Math.min(size, Number(given.get(path) ?? (depth === 0 ? FIRST : 0)));
    if (shown < size) folds++;
    const members = entries.slice(0, shown).map(([key, member], i) => {
      const at = `${path}/${list ? i : key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      return {
        name: list ? String(i + 1) : key,
        namePath: `${at}#`,
        nameFolded: !list && folded(key, `${at}#`),
        value: lay(member, at, depth + 1),
      };
    });
    return { kind: list ? 'list' : 'object', path, size, members };
  };
  const tree = lay(body, '', 0);
  return { tree, folds };
}
