/**
 * A tokenizer for one JSON text (RFC 8259), without recursion and without building values. Its callers apply checks beyond the grammar; JSON.parse accepts
 * exactly the texts that reach `end`.
 */
import { digitsEnd, hexUnit, isShortEscape } from './characters.ts';

/**
 * `name`: of a member; its value is the next token. `close`: of an object or array. `literal`: true, false, null. `end`: the text is complete. `bad`: invalid
 * JSON, with the place in `start` and the reason in `reason`; no token follows either. `part`: a string or name is longer than `longest`, and was read up to
 * `end`; its kind is returned with its last part.
 */
export type Token = 'object' | 'array' | 'close' | 'name' | 'string' | 'number' | 'literal' | 'end' | 'bad' | 'part';

const VALUE = 0;
const FIRST_ITEM = 1;
const FIRST_NAME = 2;
const NAME = 3;
const COLON = 4;
const AFTER = 5;

const IN_OBJECT = -1;

export class JsonTokens {
  readonly #text: string;
  readonly #longest: number;
  /** The kind of the string that was read in part. */
  #inside: 'name' | 'string' | undefined;
  #expected = VALUE;
  /** By level, from 1: the index of the current item of an array; IN_OBJECT in an object. */
  readonly #items: number[] = [IN_OBJECT];

  /** Offsets of the token, in UTF-16 code units; for a string, including its quotes. */
  start = 0;
  end = 0;
  /** For `bad`: the problem at `start`. */
  reason = '';
  /** The number of objects and arrays around the token, including one that it opens, excluding one that it closes. */
  depth = 0;
  /** For a string or name: whether it contains an escape. The two following offsets are valid only then. */
  escaped = false;
  /** Offsets of the first `\u0000`, and of the first escaped surrogate without its other half; -1 for none. */
  nulAt = -1;
  surrogateAt = -1;
  /** For a number: whether it is written with an exponent. */
  hasExponent = false;

  /** `longest`: code units of a string that are read in one step; by default all, and then there is no `part`. */
  constructor(text: string, longest = text.length) {
    this.#text = text;
    this.#longest = longest;
  }

  /** Returns the index of the current array item at this level (from 1); undefined for an object. */
  itemAt(level: number): number | undefined {
    const item = this.#items[level] ?? IN_OBJECT;
    return item === IN_OBJECT ? undefined : item;
  }

  /** Whether a `bad` string is the name of a member. */
  get isInName(): boolean {
    return this.#expected === COLON;
  }

  next(): Token {
    const inside = this.#inside;
    if (inside !== undefined) {
      this.#inside = undefined;
      return this.#restOfString(this.end, inside);
    }
    const text = this.#text;
    const length = text.length;
    let at = this.end;
    for (;;) {
      let code = -1;
      while (at < length) {
        code = text.charCodeAt(at);
        if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
        at++;
      }
      const expected = this.#expected;
      if (at === length && expected !== COLON) {
        if (expected !== AFTER || this.depth > 0) return this.#bad(at, 'the text ends too early');
        this.start = at;
        this.end = at;
        return 'end';
      }
      if (expected === AFTER) {
        if (this.depth === 0) return this.#bad(at, 'something follows the value');
        const item = this.#items[this.depth] ?? IN_OBJECT;
        if (code === 0x2c) {
          at++;
          if (item !== IN_OBJECT) this.#items[this.depth] = item + 1;
          this.#expected = item === IN_OBJECT ? NAME : VALUE;
        } else if (code === (item === IN_OBJECT ? 0x7d : 0x5d)) {
          return this.#close(at);
        } else {
          return this.#bad(at, item === IN_OBJECT ? 'expected "," or "}"' : 'expected "," or "]"');
        }
      } else if (expected === COLON) {
        if (code !== 0x3a || at === length) return this.#bad(at, 'expected ":"');
        at++;
        this.#expected = VALUE;
      } else if (expected === VALUE) {
        return this.#value(at, code);
      } else if (expected === FIRST_ITEM) {
        return code === 0x5d ? this.#close(at) : this.#value(at, code);
      } else if (expected === FIRST_NAME && code === 0x7d) {
        return this.#close(at);
      } else {
        if (code !== 0x22) return this.#bad(at, 'expected a member name in double quotes');
        this.#expected = COLON;
        return this.#string(at, 'name');
      }
    }
  }

  #value(at: number, code: number): Token {
    this.#expected = AFTER;
    if (code === 0x22) return this.#string(at, 'string');
    if (code === 0x7b) return this.#open(at, 'object', IN_OBJECT, FIRST_NAME);
    if (code === 0x5b) return this.#open(at, 'array', 0, FIRST_ITEM);
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return this.#number(at);
    if (code === 0x74) return this.#literal(at, 'true');
    if (code === 0x66) return this.#literal(at, 'false');
    if (code === 0x6e) return this.#literal(at, 'null');
    return this.#bad(at, code === 0xfeff ? 'a byte order mark, which JSON does not have' : 'expected a value');
  }

  #open(at: number, token: Token, item: number, expected: number): Token {
    this.#items[++this.depth] = item;
    this.#expected = expected;
    this.start = at;
    this.end = at + 1;
    return token;
  }

  #close(at: number): Token {
    this.depth--;
    this.#expected = AFTER;
    this.start = at;
    this.end = at + 1;
    return 'close';
  }

  #literal(at: number, word: string): Token {
    if (!this.#text.startsWith(word, at)) return this.#bad(at, 'expected a value');
    this.start = at;
    this.end = at + word.length;
    return 'literal';
  }

  #number(from: number): Token {
    const text = this.#text;
    const whole = text.charCodeAt(from) === 0x2d ? from + 1 : from;
    let at = digitsEnd(text, whole);
    if (at === whole || (at > whole + 1 && text.charCodeAt(whole) === 0x30)) return this.#bad(from, NO_NUMBER);
    this.hasExponent = false;
    if (text.charCodeAt(at) === 0x2e) {
      const fraction = at + 1;
      at = digitsEnd(text, fraction);
      if (at === fraction) return this.#bad(from, NO_NUMBER);
    }
    const code = text.charCodeAt(at);
    if (code === 0x65 || code === 0x45) {
      this.hasExponent = true;
      const sign = text.charCodeAt(at + 1);
      const exponent = sign === 0x2b || sign === 0x2d ? at + 2 : at + 1;
      at = digitsEnd(text, exponent);
      if (at === exponent) return this.#bad(from, NO_NUMBER);
    }
    this.start = from;
    this.end = at;
    return 'number';
  }

  #string(from: number, token: 'name' | 'string'): Token {
    this.start = from;
    this.escaped = false;
    return this.#restOfString(from + 1, token);
  }

  #restOfString(from: number, token: 'name' | 'string'): Token {
    const text = this.#text;
    const length = text.length;
    const stop = Math.min(length, from + this.#longest);
    let at = from;
    for (;;) {
      let code = -1;
      while (at < stop) {
        code = text.charCodeAt(at);
        if (code === 0x22 || code === 0x5c || code < 0x20) break;
        at++;
      }
      if (at === length) return this.#badString(length, 'the string has no end');
      if (at >= stop) {
        this.#inside = token;
        this.end = at;
        return 'part';
      }
      if (code === 0x22) {
        this.end = at + 1;
        return token;
      }
      if (code === 0x5c) {
        if (!this.escaped) {
          this.escaped = true;
          this.nulAt = -1;
          this.surrogateAt = -1;
        }
        const after = this.#escape(at);
        if (after < 0) return this.#badString(-1 - after, 'an unknown escape');
        at = after;
      } else {
        return this.#badString(at, 'a control character in a string');
      }
    }
  }

  /** Returns the offset after the escape that begins at `at`, or -1 - offset of an invalid escape. */
  #escape(at: number): number {
    const text = this.#text;
    const kind = text.charCodeAt(at + 1);
    if (kind !== 0x75) return isShortEscape(kind) ? at + 2 : -1 - at;
    const unit = hexUnit(text, at + 2);
    if (unit === -1) return -1 - at;
    if (unit === 0 && this.nulAt === -1) this.nulAt = at;
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    if (unit < 0xdc00 && text.startsWith('\\u', at + 6)) {
      const low = hexUnit(text, at + 8);
      if (low === -1) return -1 - (at + 6);
      if (low >= 0xdc00 && low <= 0xdfff) return at + 12;
    }
    if (this.surrogateAt === -1) this.surrogateAt = at;
    return at + 6;
  }

  #bad(at: number, reason: string): Token {
    this.escaped = false;
    return this.#badString(at, reason);
  }

  #badString(at: number, reason: string): Token {
    this.start = at;
    this.reason = reason;
    return 'bad';
  }
}

const NO_NUMBER = 'not a JSON number';
