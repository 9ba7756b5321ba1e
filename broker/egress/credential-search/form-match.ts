/** Matches a form of a credential at a position, also when its end has not arrived yet. */
import { present } from '../../runtime/present.ts';
import type { Form } from './forms.ts';

/**
 * A form has at least this many characters between two stretches of white space: encoders break lines after 60 or more. The search
 * (form-windows.ts) relies on this.
 */
export const MIN_LINE = 7;
/** Longer white space ends a form. It may contain one line break: an empty line ends a server-sent event. */
export const MAX_GAP = 32;

const [TAB, LF, CR, BLANK, BACKSLASH, SMALL_N, SMALL_R] = [0x09, 0x0a, 0x0d, 0x20, 0x5c, 0x6e, 0x72];

export type FormMatch = {
  /** Position after the longest match of the form; -1 when it does not match. */
  end: number;
  /** Whether the bytes end where the form, or a longer match of it, could continue. */
  partial: boolean;
};

/** Matches the form from `start` on within the first `length` bytes. */
export function matchForm({ characters, gaps }: Form, bytes: Uint8Array, length: number, start: number): FormMatch {
  let partial = false;
  // A position reached, and how many characters precede it since the last gap. Nearly always one.
  let places = [{ at: start, line: Number.POSITIVE_INFINITY }];
  for (const [index, spellings] of characters.entries()) {
    const next: typeof places = [];
    const read = (at: number, line: number) => {
      for (const spelling of spellings) {
        const agreed = agreedBytes(spelling, bytes, length, at);
        if (agreed === spelling.length) addPlace(next, at + agreed, line + 1);
        else if (at + agreed === length) partial = true;
      }
    };
    for (const { at, line } of places) {
      read(at, line);
      if (!gaps || index === 0 || line < MIN_LINE) continue;
      const gapEnd = endOfGap(bytes, length, at);
      if (gapEnd === length) partial = true;
      else if (gapEnd > at && gapEnd - at <= MAX_GAP) read(gapEnd, 0);
    }
    if (next.length === 0) return { end: -1, partial };
    places = next;
  }
  return { end: Math.max(...places.map(({ at }) => at)), partial };
}

/** Returns where the form may begin when its character `index` is at `at`; each must be verified with `matchForm`. */
export function startsBefore({ characters, gaps }: Form, bytes: Uint8Array, index: number, at: number): number[] {
  let places = [at];
  for (let i = index - 1; i >= 0; i--) {
    const before: number[] = [];
    for (const place of places) {
      const ends = gaps ? [place, startOfGap(bytes, place)] : [place];
      for (const end of new Set(ends))
        for (const spelling of present(characters[i], 'character')) {
          const begin = end - spelling.length;
          if (begin >= 0 && agreedBytes(spelling, bytes, end, begin) === spelling.length && !before.includes(begin))
            before.push(begin);
        }
    }
    places = before;
  }
  return places;
}

function addPlace(places: { at: number; line: number }[], at: number, line: number): void {
  if (!places.some((place) => place.at === at && place.line === line)) places.push({ at, line });
}

function agreedBytes(spelling: Uint8Array, bytes: Uint8Array, length: number, at: number): number {
  let agreed = 0;
  while (agreed < spelling.length && at + agreed < length && bytes[at + agreed] === spelling[agreed]) agreed++;
  return agreed;
}

/** The end of a gap: blanks, at most one line break, and blanks. Returns `length` when it may continue after the last byte. */
function endOfGap(bytes: Uint8Array, length: number, at: number): number {
  const limit = Math.min(length, at + MAX_GAP + 1);
  let end = at;
  while (end < limit && isBlank(bytes[end])) end++;
  end = endOfBreak(bytes, length, end);
  while (end < limit && isBlank(bytes[end])) end++;
  return end;
}

/** CR, LF or both, or the escapes that stand for them in JSON. */
function endOfBreak(bytes: Uint8Array, length: number, at: number): number {
  if (bytes[at] === CR || bytes[at] === LF) {
    if (at + 1 >= length) return length;
    return bytes[at] === CR && bytes[at + 1] === LF ? at + 2 : at + 1;
  }
  let end = at;
  for (const letter of [SMALL_R, SMALL_N]) {
    if (end >= length || bytes[end] !== BACKSLASH) continue;
    if (end + 1 >= length) return length;
    if (bytes[end + 1] === letter) end += 2;
  }
  return end;
}

/** The same, backwards. It may accept more than `endOfGap` would, because `matchForm` verifies the result. */
function startOfGap(bytes: Uint8Array, at: number): number {
  const limit = Math.max(0, at - MAX_GAP);
  let start = at;
  while (start > limit && isBlank(bytes[start - 1])) start--;
  if (start > limit && bytes[start - 1] === LF) start--;
  else if (start > limit + 1 && bytes[start - 2] === BACKSLASH && bytes[start - 1] === SMALL_N) start -= 2;
  if (start > limit && bytes[start - 1] === CR) start--;
  else if (start > limit + 1 && bytes[start - 2] === BACKSLASH && bytes[start - 1] === SMALL_R) start -= 2;
  while (start > limit && isBlank(bytes[start - 1])) start--;
  return start;
}

function isBlank(byte: number | undefined): boolean {
  return byte === BLANK || byte === TAB;
}
