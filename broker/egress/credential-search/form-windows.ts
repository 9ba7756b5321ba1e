// biome-ignore-all lint/style/noNonNullAssertion: typed arrays and buffers, read within their bounds; a check per byte would cost on every answer.
/**
 * Finds candidate positions of a credential's forms at memory speed: one aligned word of four bytes is checked per four bytes. Each form
 * has a stretch of seven bytes without white space (`MIN_LINE`), so at least one aligned word lies wholly in it, and all possible words are
 * in a table.
 */

import { MAX_GAP, MIN_LINE } from './form-match.ts';
import type { Form } from './forms.ts';

const WORD = 4;

/**
 * Longest beginning of a form that contains no aligned word: less than `MIN_LINE` bytes, white space, and less than `MIN_LINE` bytes again.
 */
export const MAX_UNSEEN = 2 * (MIN_LINE - 1) + MAX_GAP;

/** Position of a word in a form: `back` bytes after the beginning of its character `index`. */
export type WordPlace = { readonly form: Form; readonly index: number; readonly back: number };

/** Called for each word found: its position, and its possible positions in forms. */
export type OnWord = (at: number, places: readonly WordPlace[]) => void;

const scratch = new Uint8Array(WORD);
const scratchWord = new Int32Array(scratch.buffer);

/** The word at `from`, in the machine's byte order, as read from memory. */
function wordOf(bytes: readonly number[], from: number): number {
  for (let i = 0; i < WORD; i++) scratch[i] = bytes[from + i]!;
  return scratchWord[0]!;
}

/** A table of words. Contains parts of a credential, so in private fields only. */
export class FormWindows {
  readonly #places = new Map<number, WordPlace[]>();
  /** By hash of a word: 1 when the table has a word with this hash. */
  readonly #filter: Uint8Array;
  readonly #shift: number;

  constructor(forms: readonly Form[]) {
    for (const form of forms)
      if (form.gaps) this.#addEveryWord(form);
      else this.#addFirstWords(form);
    // Sized to avoid most useless lookups while the filter stays in the cache of a core.
    const power = Math.min(17, Math.max(14, Math.ceil(Math.log2(this.#places.size * 64))));
    this.#shift = 32 - power;
    this.#filter = new Uint8Array(2 ** power);
    for (const word of this.#places.keys()) this.#filter[hashOf(word) >>> this.#shift] = 1;
  }

  /** Checks the aligned words of the bytes. */
  scan(bytes: Uint8Array, onWord: OnWord): void {
    const first = -bytes.byteOffset & (WORD - 1);
    if (bytes.length < first + WORD) return;
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + first, (bytes.length - first) >>> 2);
    const filter = this.#filter;
    const shift = this.#shift;
    const look = (i: number) => {
      const places = this.#places.get(words[i]!);
      if (places !== undefined) onWord(first + i * WORD, places);
    };
    // Four at a time with one branch, which is twice as fast.
    const many = words.length & ~3;
    for (let i = 0; i < many; i += 4) {
      const inFilter =
        filter[hashOf(words[i]!) >>> shift]! |
        filter[hashOf(words[i + 1]!) >>> shift]! |
        filter[hashOf(words[i + 2]!) >>> shift]! |
        filter[hashOf(words[i + 3]!) >>> shift]!;
      if (inFilter !== 0) for (let at = i; at < i + 4; at++) look(at);
    }
    for (let at = many; at < words.length; at++) look(at);
  }

  /** Without white space, the first aligned word begins in the first four bytes. */
  #addFirstWords(form: Form): void {
    for (const bytes of beginnings(form, 0, 2 * WORD - 1))
      for (let back = 0; back < WORD; back++) this.#add(wordOf(bytes, back), { form, index: 0, back });
  }

  #addEveryWord(form: Form): void {
    for (const [index, spellings] of form.characters.entries())
      for (const spelling of spellings)
        for (let back = 0; back < spelling.length; back++)
          for (const rest of beginnings(form, index + 1, WORD - (spelling.length - back))) {
            const bytes = [...spelling.subarray(back), ...rest];
            if (bytes.length >= WORD) this.#add(wordOf(bytes, 0), { form, index, back });
          }
  }

  #add(word: number, place: WordPlace): void {
    const places = this.#places.get(word);
    if (places === undefined) this.#places.set(word, [place]);
    else if (
      !places.some(({ form, index, back }) => form === place.form && index === place.index && back === place.back)
    )
      places.push(place);
  }
}

/** Multiplicative hashing (Knuth): the upper bits of a product with the golden ratio. */
function hashOf(word: number): number {
  return Math.imul(word, 0x9e3779b1);
}

/** All byte strings with which a form can continue from one of its characters, up to `length` bytes or its end. */
function beginnings(form: Form, index: number, length: number): number[][] {
  const spellings = form.characters[index];
  if (length <= 0 || spellings === undefined) return [[]];
  return spellings.flatMap((spelling) =>
    beginnings(form, index + 1, length - spelling.length).map((rest) => [...spelling, ...rest]),
  );
}
