// Prepares texts of agents for display: shows hidden characters, and reports texts that imitate others.
import { visible } from '../visible.js';

const count = new Intl.NumberFormat('en');

/** `1 line`, `1,234 lines`. */
export const counted = (/** @type {number} */ number, /** @type {string} */ noun) =>
  `${count.format(number)} ${noun}${number === 1 ? '' : 's'}`;

/**
 * Formats a size in bytes.
 *
 * @param {number} bytes
 */
export function sized(bytes) {
  if (bytes < 1000) return counted(bytes, 'byte');
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/**
 * Describes a body that is not text.
 *
 * @param {{ media_type: string | null, bytes: number }} upload
 */
export const describeUpload = ({ media_type: type, bytes }) => `${sized(bytes)} of ${type ?? 'no media type'}`;

/**
 * Returns how many characters of a text are shown by their code point.
 *
 * @param {string} text
 */
export function countUnseen(text) {
  return (visible(text).match(/⟦U\+/g)?.length ?? 0) - (text.match(/⟦U\+/g)?.length ?? 0);
}

/**
 * Returns the percent-decoded text; undefined when it is not valid.
 *
 * @param {string} text
 */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Splits an endpoint into its parts; `readsAs` is set when the decoded text of a part differs from the sent one.
 *
 * @param {string} endpoint
 */
export function readEndpoint(endpoint) {
  const mark = endpoint.indexOf('?');
  const path = mark < 0 ? endpoint : endpoint.slice(0, mark);
  const query = mark < 0 ? '' : endpoint.slice(mark + 1);
  const parameters = query === '' ? [] : query.split('&').map(readParameter);
  return { path, readsAs: differing(path, decoded(path)), query, parameters };
}

/** @param {string} raw */
function readParameter(raw) {
  const mark = raw.indexOf('=');
  const name = mark < 0 ? raw : raw.slice(0, mark);
  const value = mark < 0 ? '' : raw.slice(mark + 1);
  // Most servers read a plus in a query as a space, some as a plus: the sent text is shown beside it.
  const spaced = (/** @type {string} */ text) => decoded(text.replaceAll('+', ' '));
  return { raw, name: spaced(name) ?? name, value: spaced(value) ?? value };
}

const differing = (/** @type {string} */ raw, /** @type {string | undefined} */ text) =>
  text !== undefined && text !== raw ? text : undefined;

const MANY = 2_000;
const CHUNK = 8_000;
// Matches empty lines or blanks, long enough to push the following text out of view.
const EMPTY = /\n(?:[^\S\n]*\n){3,}|[^\S\n]{60,}/g;

/** @typedef {{ text: string, cut: boolean, gap?: undefined }} Chunk */
/** @typedef {Chunk | { gap: string, breaks: boolean }} Piece */

/**
 * Splits a text into pieces to lay out: `text`, or a `gap` that describes empty space. Long texts are split into chunks, so that a browser lays out
 * only those in view; `cut`: the line continues in the next chunk.
 *
 * @param {string} text
 * @returns {Piece[]}
 */
export function piecesOf(text) {
  const shown = visible(text);
  const gaps = [...shown.matchAll(EMPTY)];
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (const gap of gaps.length > MANY ? [] : gaps) {
    const [blank] = gap;
    const lines = blank.split('\n').length - 2;
    pieces.push(...chunksOf(shown.slice(at, gap.index)));
    pieces.push({ gap: lines > 0 ? counted(lines, 'empty line') : counted(blank.length, 'space'), breaks: lines > 0 });
    at = gap.index + blank.length;
  }
  pieces.push(...chunksOf(shown.slice(at)));
  return pieces;
}

/** @param {string} text */
function chunksOf(text) {
  /** @type {Chunk[]} */
  const chunks = [];
  let at = 0;
  while (text.length - at > CHUNK) {
    const line = text.lastIndexOf('\n', at + CHUNK);
    let end = line > at + CHUNK / 2 ? line + 1 : at + CHUNK;
    // Never splits a surrogate pair.
    if (/[\ud800-\udbff]/.test(text.charAt(end - 1))) end -= 1;
    chunks.push({ text: text.slice(at, end), cut: text[end - 1] !== '\n' });
    at = end;
  }
  if (at < text.length || at === 0) chunks.push({ text: text.slice(at), cut: false });
  return text === '' ? [] : chunks;
}

/**
 * Decodes base64 text when the result is readable text; otherwise undefined.
 *
 * @param {string} text
 */
export function fromBase64(text) {
  if (text.length < 24 || !/^[A-Za-z0-9+/_\s-]+(?:=\s*){0,2}$/.test(text)) return undefined;
  try {
    const plain = atob(text.replaceAll(/\s/g, '').replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(plain, (character) => character.charCodeAt(0));
    const read = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    // An identifier may be valid base64 by chance; its decoded bytes are then not text.
    return /[\u0000-\u0008\u000e-\u001f\u007f-\u009f]/.test(read) || !/[\s\p{L}]{3}/u.test(read) ? undefined : read;
  } catch {
    return undefined;
  }
}

/**
 * Returns warnings about what has changed since a call was held, so that an approval would have no effect, or another one: its agent, the agent's
 * parent or its platform is suspended, or its connection was replaced.
 *
 * @param {{ agent: { suspended: boolean }, platform_suspended: boolean, connection_note: string | null }} held
 */
export function changedTexts({ agent, platform_suspended: isOff, connection_note: note }) {
  const what = agent.suspended ? 'agent' : isOff ? 'platform' : undefined;
  return [
    ...(what ? [`The ${what} is suspended: an approved call is not made, unless the ${what} is resumed before.`] : []),
    ...(note === null ? [] : [note]),
  ];
}
