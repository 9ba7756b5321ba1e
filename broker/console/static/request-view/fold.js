// How much of a request's body is laid out at first. What is folded is counted: nobody approves what was never shown.

/** Rows: a body of so many is laid out whole, and of a larger one each part that is small. */
const WHOLE = 200;
const SMALL = 40;
/** Of a larger part, so many members at first, and so many more each time. */
const FIRST = 30;
export const MORE = 200;
/** Characters: longer texts, and longer names, begin folded. */
const LONG = 1_000;
/** Up to here everything can be laid out at once; beyond, it is shown as text. */
const MOST_ROWS = 1_500;
const MOST_CHARACTERS = 60_000;

/** Of more recipients so many at first. */
export const FIRST_RECIPIENTS = 12;

/** Opens everything. */
export const EVERYTHING = Symbol('everything');

/** @typedef {ReturnType<typeof readBody>} Reader */
/** How much of each part is open. @typedef {Map<string, number | true>} Opened */
/** @typedef {{ kind: 'text', path: string, value: string, folded: boolean, size?: undefined }} TextNode */
/** @typedef {{ kind: 'plain', path: string, value: unknown, size?: undefined }} PlainNode */
/** @typedef {{ kind: 'list' | 'object', path: string, size: number, members: Member[] }} PartNode */
/** @typedef {TextNode | PlainNode | PartNode} Node */
/** @typedef {{ name: string, namePath: string, nameFolded: boolean, value: Node }} Member */

/**
 * How many rows each part takes when all in it is open.
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
 * A reader of one body. `text`: its JSON, indented.
 *
 * @param {unknown} body
 */
export function readBody(body) {
  /** @type {Map<object, number>} */
  const weights = new Map();
  const rows = weigh(body, weights);
  const text = JSON.stringify(body, null, 2);
  return { body, rows, weights, text, tooMuch: rows > MOST_ROWS || text.length > MOST_CHARACTERS };
}

/**
 * What to lay out. `opened`: by path (a JSON pointer; with `#` at its end a member's name), how many members of a part, or
 * true for a text; or EVERYTHING. Answers the tree and how many of its parts are folded.
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
