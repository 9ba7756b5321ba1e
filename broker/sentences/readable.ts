/** Makes values of a request readable in a sentence: invisible characters shown, long texts truncated, and misleading ones marked. */
import { oddities, oddRecipient, scriptsOf, visibleLine } from '../console/static/visible.js';
import type { Part } from './part.ts';

/** Limits of the characters of a value that are read, and of the result, which is longer where hidden characters are shown by their numbers. */
const MAX_READ = 120;
const MAX_SHOWN = 240;
const MAX_NOTED = 240;

/** Quotation marks that could end a quotation, or seem to: shown by number inside of one. The straight `"` is not used for quoting here. */
const QUOTATION = /[“”„‟❝❞〝〞〟＂]/gu;
/** Enough blanks to push the following text out of sight. */
const BLANKS = /[\p{Zs}\t]{3,}/gu;
/** More combining marks on one letter than any language has; they cover the text around them. */
const MARKS = /(\p{M}{3})\p{M}+/gu;
/** A single word of characters common in names, which needs no quotation marks. Brackets are excluded, because notes stand in them. */
const ONE_WORD = /^[\p{L}\p{N}\p{M}_.@/#:+=~$%&*!^-]+$/u;

const count = new Intl.NumberFormat('en');

/** Formats `1 field`, `1,234 fields`. */
export const counted = (number: number, noun: string): string =>
  `${count.format(number)} ${noun}${number === 1 ? '' : 's'}`;

/** Truncates a text and makes invisible characters visible. */
export const shown = (text: string): string => visibleCut(text, 24).text;

/**
 * Returns the part of a sentence for a text of the request. `quoted`: it is free text; otherwise it names something, and letters unusual in such names are
 * reported. `isWord`: it was formatted by the broker, such as `45.00 EUR`, and needs no quotation marks. `more`: an additional note.
 */
export function valuePart(
  text: string,
  {
    strong,
    quoted,
    isWord,
    more,
  }: { strong?: boolean; quoted?: boolean; isWord?: boolean; more?: string | undefined } = {},
): Part {
  const { text: cut, isCut } = visibleCut(text, MAX_READ);
  const inQuotes = quoted === true || !(isWord || ONE_WORD.test(cut));
  const value = inQuotes ? cut.replace(QUOTATION, byNumber) : cut;
  const read = text.slice(0, MAX_READ * 4);
  const notes = [
    ...(isCut ? [`the beginning of ${counted(text.length, 'character')}`] : []),
    ...(quoted ? oddities(read) : oddName(read)).map((sentence) => sentence.replace(/\.$/, '')),
    ...(more === undefined ? [] : [more]),
  ];
  // Each note may be a sentence; here they are joined to one.
  const joined = notes.map((one, at) => (at === 0 ? one : one.replace(/^It/, 'it'))).join('; ');
  const note = notes.length === 0 ? undefined : visibleCut(joined, MAX_NOTED).text;
  return {
    value,
    ...(strong && { strong: true as const }),
    ...(inQuotes && { quoted: true as const }),
    ...(note !== undefined && { note }),
  };
}

/** A name in a single non-Latin alphabet may still look like another one: “асме” in Cyrillic. */
function oddName(text: string): string[] {
  const odd = oddRecipient(text);
  const foreign = scriptsOf(text).filter((name) => name !== 'Latin');
  return odd.length > 0 || foreign.length === 0 ? odd : [`${foreign.join(' and ')} letters`];
}

function visibleCut(text: string, most: number): { text: string; isCut: boolean } {
  const beginning = text.length > most ? wellFormed(text.slice(0, most)) : text;
  const seen = visibleLine(beginning)
    .replace(BLANKS, (blanks) => `⟦${counted([...blanks].length, 'space')}⟧`)
    .replace(MARKS, '$1⟦more marks⟧');
  const isLong = seen.length > MAX_SHOWN;
  const isCut = beginning.length < text.length || isLong;
  return { text: isCut ? `${isLong ? cutShown(seen) : seen}…` : seen, isCut };
}

/** Removes half of a surrogate pair at the end. */
const wellFormed = (text: string): string => (/[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text);

/** Truncates without splitting the `⟦U+…⟧` number of a character. */
function cutShown(text: string): string {
  const cut = wellFormed(text.slice(0, MAX_SHOWN));
  const open = cut.lastIndexOf('⟦');
  return open > cut.lastIndexOf('⟧') ? cut.slice(0, open) : cut;
}

const byNumber = (mark: string): string => `⟦U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase()}⟧`;
