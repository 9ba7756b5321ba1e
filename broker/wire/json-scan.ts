/** One pass over a JSON text, without recursion and without building anything: finds the first thing to refuse. */
import { isExactDecimal, numberEnd } from './exact-decimal.ts';

export type StrictJsonLimits = {
  /** Levels of arrays and objects; 64 unless told. */
  maxDepth?: number;
  /** Members of the outermost object in which `\u0000` may occur. Everywhere else it is refused. */
  nulAllowedIn?: readonly string[];
};

const VALUE = 0;
const FIRST_ITEM = 1;
const FIRST_NAME = 2;
const NAME = 3;
const AFTER = 4;

/** Above this many names an object's names move from a list to a set. */
const FEW = 12;

export class JsonScan {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #nulAllowedIn: readonly string[];
  #at = 0;
  #error: string | undefined;
  #depth = 0;
  /** By level, from 1: the names seen so far (undefined in an array), the same as a set, the name or index we are in. */
  readonly #names: (string[] | undefined)[] = [undefined];
  readonly #sets: (Set<string> | undefined)[] = [undefined];
  readonly #place: (string | number)[] = [''];
  #inName = false;

  constructor(text: string, limits: StrictJsonLimits) {
    this.#text = text;
    this.#maxDepth = limits.maxDepth ?? 64;
    this.#nulAllowedIn = limits.nulAllowedIn ?? [];
  }

  /** The first reason to refuse the text, with its place; undefined when there is none. */
  run(): string | undefined {
    const text = this.#text;
    const end = text.length;
    let state = VALUE;
    for (;;) {
      let code = -1;
      while (this.#at < end) {
        code = text.charCodeAt(this.#at);
        if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) break;
        this.#at++;
        code = -1;
      }
      if (code === -1) {
        if (state === AFTER && this.#depth === 0) return undefined;
        return this.#offset('the text ends too early');
      }
      if (state === AFTER) {
        const inObject = this.#names[this.#depth] !== undefined;
        if (this.#depth === 0) return this.#offset('something follows the value');
        if (code === 0x2c) {
          this.#at++;
          if (!inObject) (this.#place[this.#depth] as number)++;
          state = inObject ? NAME : VALUE;
        } else if (code === (inObject ? 0x7d : 0x5d)) {
          this.#leave();
        } else {
          return this.#offset(inObject ? 'expected "," or "}"' : 'expected "," or "]"');
        }
      } else if ((state === FIRST_NAME && code === 0x7d) || (state === FIRST_ITEM && code === 0x5d)) {
        this.#leave();
        state = AFTER;
      } else if (state === FIRST_NAME || state === NAME) {
        if (code !== 0x22) return this.#offset('expected a member name in double quotes');
        if (!this.#name()) return this.#error;
        state = VALUE;
      } else {
        state = this.#value(code);
        if (this.#error !== undefined) return this.#error;
      }
    }
  }

  #value(code: number): number {
    if (code === 0x22) {
      this.#string();
      return AFTER;
    }
    if (code === 0x7b || code === 0x5b) {
      if (this.#depth >= this.#maxDepth) {
        this.#error = `offset ${this.#at}: nested deeper than ${this.#maxDepth} levels`;
        return AFTER;
      }
      this.#at++;
      this.#depth++;
      this.#names[this.#depth] = code === 0x7b ? [] : undefined;
      this.#sets[this.#depth] = undefined;
      this.#place[this.#depth] = code === 0x7b ? '' : 0;
      return code === 0x7b ? FIRST_NAME : FIRST_ITEM;
    }
    if (code === 0x2d || (code >= 0x30 && code <= 0x39)) this.#number();
    else if (code === 0x74) this.#literal('true');
    else if (code === 0x66) this.#literal('false');
    else if (code === 0x6e) this.#literal('null');
    else this.#error = this.#offset('expected a value');
    return AFTER;
  }

  #leave(): void {
    this.#at++;
    this.#depth--;
  }

  #literal(word: string): void {
    if (this.#text.startsWith(word, this.#at)) this.#at += word.length;
    else this.#error = this.#offset('expected a value');
  }

  /** A member's name and its colon. */
  #name(): boolean {
    const from = this.#at;
    this.#inName = true;
    const escaped = this.#string();
    this.#inName = false;
    if (this.#error !== undefined) return false;
    const raw = this.#text.slice(from + 1, this.#at - 1);
    const name = escaped ? (JSON.parse(`"${raw}"`) as string) : raw;
    const names = this.#names[this.#depth] as string[];
    this.#place[this.#depth] = name;
    if (names.length < FEW ? names.includes(name) : this.#inSet(names, name)) {
      this.#error = `${this.#pointer()}: this member name is there twice`;
      return false;
    }
    names.push(name);
    let code = this.#text.charCodeAt(this.#at);
    while (code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09) code = this.#text.charCodeAt(++this.#at);
    if (code !== 0x3a) {
      this.#error = this.#offset('expected ":"');
      return false;
    }
    this.#at++;
    return true;
  }

  /** Whether the name was there; keeps it. */
  #inSet(names: readonly string[], name: string): boolean {
    let set = this.#sets[this.#depth];
    if (set === undefined) {
      set = new Set(names);
      this.#sets[this.#depth] = set;
    }
    if (set.has(name)) return true;
    set.add(name);
    return false;
  }

  /** Moves behind a string; true when it holds an escape. */
  #string(): boolean {
    const text = this.#text;
    let escaped = false;
    let at = this.#at + 1;
    for (;;) {
      const code = text.charCodeAt(at);
      if (code === 0x22) {
        this.#at = at + 1;
        return escaped;
      }
      if (code === 0x5c) {
        escaped = true;
        at = this.#escape(at);
        if (at === -1) return true;
      } else if (code >= 0x20) {
        at++;
      } else {
        // NaN, at the end of the text, comes here too.
        this.#at = Math.min(at, text.length);
        this.#error = this.#offset(at < text.length ? 'a control character in a string' : 'the string has no end');
        return true;
      }
    }
  }

  /** The offset behind the escape that begins at `at`, or -1 with `#error` set. */
  #escape(at: number): number {
    const kind = this.#text[at + 1];
    if (kind !== 'u') {
      if (kind !== undefined && '"\\/bfnrt'.includes(kind)) return at + 2;
      this.#at = at;
      this.#error = this.#offset('an unknown escape');
      return -1;
    }
    const unit = this.#hex(at);
    if (unit === -1) return -1;
    if (unit === 0 && !this.#mayHoldNul()) {
      this.#error = `${this.#pointer()}: \\u0000 is not allowed here`;
      return -1;
    }
    if (unit < 0xd800 || unit > 0xdfff) return at + 6;
    const next = unit < 0xdc00 && this.#text.startsWith('\\u', at + 6) ? this.#hex(at + 6) : 0;
    if (next >= 0xdc00 && next <= 0xdfff) return at + 12;
    if (this.#error === undefined) this.#error = `${this.#pointer()}: a lone surrogate (offset ${at})`;
    return -1;
  }

  /** The code unit of the `\uXXXX` at `at`, or -1 with `#error` set. */
  #hex(at: number): number {
    const digits = this.#text.slice(at + 2, at + 6);
    if (/^[0-9a-fA-F]{4}$/.test(digits)) return Number.parseInt(digits, 16);
    this.#at = at;
    this.#error = this.#offset('an unknown escape');
    return -1;
  }

  #mayHoldNul(): boolean {
    if (this.#nulAllowedIn.length === 0 || this.#names[1] === undefined) return false;
    if (this.#depth === 0 || (this.#depth === 1 && this.#inName)) return false;
    return this.#nulAllowedIn.includes(this.#place[1] as string);
  }

  #number(): void {
    const from = this.#at;
    const end = numberEnd(this.#text, from);
    if (end === -1) {
      this.#error = this.#offset('not a JSON number');
      return;
    }
    const written = this.#text.slice(from, end);
    this.#at = end;
    if (isExactDecimal(written)) return;
    const shown = written.length > 40 ? `${written.slice(0, 40)}…` : written;
    this.#error = `${this.#pointer()}: the number ${shown} would be sent as another number; send it as a string`;
  }

  #offset(reason: string): string {
    return `offset ${this.#at}: ${reason}`;
  }

  /** The place that is being read, as RFC 6901 writes it; a name is cut after 64 characters. */
  #pointer(): string {
    if (this.#depth === 0) return 'the value';
    const parts = this.#place.slice(1, this.#depth + 1).map((part) => {
      const name = String(part).slice(0, 64).toWellFormed();
      return name
        .replaceAll('~', '~0')
        .replaceAll('/', '~1')
        .replaceAll(/[\0-\x1f]/g, '?');
    });
    return `/${parts.join('/')}`;
  }
}
