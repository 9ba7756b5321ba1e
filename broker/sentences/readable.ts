/** Values of a request as a person may read them in a sentence: nothing hidden, nothing endless, and said when it is not as it seems. */
import { oddities, oddRecipient, scriptsOf, visibleLine } from '../console/static/visible.js';
import type { Part } from './part.ts';

/** Characters of a value that are read, and of what comes of them (a hidden one is shown by its number, which is longer). */
const MOST_READ = 120;
const MOST_SHOWN = 240;
const MOST_NOTED = 240;

/** Marks that could end a quotation, or seem to: shown by number inside of one. A straight `"` is not what we quote with. */
const QUOTATION = /[“”„‟❝❞〝〞〟＂]/gu;
/** Enough blanks to push what follows out of sight. */
const BLANKS = /[\p{Zs}\t]{3,}/gu;
/** More marks on one letter than any language has; they cover what stands around them. */
const MARKS = /(\p{M}{3})\p{M}+/gu;
/** One word of what names are made of: it needs no quotation marks. Brackets are what notes stand in. */
const ONE_WORD = /^[\p{L}\p{N}\p{M}_.@/#:+=~$%&*!^-]+$/u;

const count = new Intl.NumberFormat('en');

/** `1 field`, `1,234 fields`. */
export const counted = (number: number, noun: string): string =>
  `${count.format(number)} ${noun}${number === 1 ? '' : 's'}`;

/** A text that is cut and made visible, and no more. */
export const shown = (text: string): string => visibleCut(text, 24).text;

/**
 * The part of a sentence that shows a text of the request. `quoted`: it is free text; else it names something, and letters that no
 * name of that kind has are said. `isWord`: it is ours, such as `45.00 EUR`, and needs no quotation marks. `more`: a note of whoever read it.
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
  const { text: cut, isCut } = visibleCut(text, MOST_READ);
  const inQuotes = quoted === true || !(isWord || ONE_WORD.test(cut));
  const value = inQuotes ? cut.replace(QUOTATION, byNumber) : cut;
  const read = text.slice(0, MOST_READ * 4);
  const notes = [
    ...(isCut ? [`the beginning of ${counted(text.length, 'character')}`] : []),
    ...(quoted ? oddities(read) : oddName(read)).map((sentence) => sentence.replace(/\.$/, '')),
    ...(more === undefined ? [] : [more]),
  ];
  // Each may be a sentence of its own, and here they are parts of one.
  const joined = notes.map((one, at) => (at === 0 ? one : one.replace(/^It/, 'it'))).join('; ');
  const note = notes.length === 0 ? undefined : visibleCut(joined, MOST_NOTED).text;
  return {
    value,
    ...(strong && { strong: true as const }),
    ...(inQuotes && { quoted: true as const }),
    ...(note !== undefined && { note }),
  };
}

/** A name may be of one alphabet only, and still be taken for another one: “асме” in Cyrillic. */
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
  const isLong = seen.length > MOST_SHOWN;
  const isCut = beginning.length < text.length || isLong;
  return { text: isCut ? `${isLong ? cutShown(seen) : seen}…` : seen, isCut };
}

/** Not between the halves of a character. */
const wellFormed = (text: string): string => (/[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text);

/** Not within the number of a character. */
function cutShown(text: string): string {
  const cut = wellFormed(text.slice(0, MOST_SHOWN));
  const open = cut.lastIndexOf('⟦');
  return open > cut.lastIndexOf('⟧') ? cut.slice(0, open) : cut;
}

const byNumber = (mark: string): string => `⟦U+${(mark.codePointAt(0) ?? 0).toString(16).toUpperCase()}⟧`;
