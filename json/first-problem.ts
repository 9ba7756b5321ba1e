/** Finds the first place in a JSON text that is invalid, or that two parsers could read differently. */
import { ALWAYS_EXACT, isExactDecimal } from './exact-decimal.ts';
import { JsonTokens } from './tokens.ts';

/** Checks in addition to the grammar and to duplicate member names in one object (compared after unescaping). */
export type Checks = {
  /** Maximum levels of arrays and objects; unlimited by default. */
  maxDepth?: number;
  /** Maximum members of all objects together; unlimited by default. */
  maxMembers?: number;
  /** Maximum objects, arrays, strings, numbers and literals together; unlimited by default. */
  maxValues?: number;
  /** Refuses numbers that JSON.stringify would write with another decimal value. */
  exactNumbers?: boolean;
  /** Refuses escaped lone surrogates, and `\u0000` outside `nulAllowedIn`. */
  strings?: {
    /** Members of the outermost object in whose values `\u0000` may occur. */
    nulAllowedIn: readonly string[];
  };
};

export type Problem = {
  kind: 'grammar' | 'depth' | 'members' | 'values' | 'repeated_name' | 'inexact_number' | 'nul' | 'lone_surrogate';
  /** Offset in the text, in UTF-16 code units. */
  at: number;
  /** Names and indexes that lead to the problem. In a name: up to the previous member; empty text when there is none. */
  place: readonly (string | number)[];
  /** For `grammar`: the error; for `inexact_number`: the number, truncated after 40 characters. */
  detail?: string;
};

const MAX_SHOWN = 40;

/**
 * What was found in a text. `problem`: undefined when nothing is refused; then JSON.parse accepts the text. `bytes`: an estimate of the memory that the
 * parsed value takes, or the part of it before the problem.
 */
export type Checked = { problem: Problem | undefined; bytes: number };

/** Returns undefined when nothing is refused: then JSON.parse accepts the text. Never throws. */
export const firstProblem = (text: string, checks: Checks): Problem | undefined => checkJson(text, checks).problem;

/** As firstProblem, and estimates the memory that the parsed value takes. */
export function checkJson(text: string, checks: Checks): Checked {
  const search = new ProblemSearch(text, checks);
  const problem = search.upTo(Number.POSITIVE_INFINITY) as Problem | undefined;
  return { problem, bytes: search.bytes };
}

/** The size of a part, in code units; each takes at most 0.1 microseconds. */
const PART = 32 * 1024;

/** Checks a long text in parts, and awaits `rest` after each. */
export async function checkJsonInParts(text: string, checks: Checks, rest: () => Promise<void>): Promise<Checked> {
  const search = new ProblemSearch(text, checks, PART);
  for (let until = PART; ; until += PART) {
    const found = search.upTo(until);
    if (found !== 'none_yet') return { problem: found, bytes: search.bytes };
    await rest();
  }
}

/**
 * Bytes that V8 takes for a value of JSON.parse, with its place in the list or object around it, in addition to the letters of strings and names (measured
 * with Node 24: `[]` 56, `{}` 64, a member of a name that no other object has 68 to 150).
 */
const OF_OBJECT = 64;
const OF_ARRAY = 56;
const OF_MEMBER = 96;
const OF_STRING = 32;
const OF_NUMBER = 16;
const OF_LITERAL = 8;

class ProblemSearch {
  readonly #text: string;
  readonly #tokens: JsonTokens;
  readonly #checks: Checks;
  readonly #names = new MemberNames();
  #members = 0;
  #values = 0;
  /** An estimate of the memory that the value read so far takes, in bytes. */
  bytes = 0;

  constructor(text: string, checks: Checks, longestString?: number) {
    this.#text = text;
    this.#tokens = new JsonTokens(text, longestString);
    this.#checks = checks;
  }

  /** Continues up to this offset. `none_yet`: no problem so far, and the text continues; undefined: the text has no problem. */
  upTo(until: number): Problem | 'none_yet' | undefined {
    const tokens = this.#tokens;
    const { exactNumbers = false, strings } = this.#checks;
    const { maxDepth = Number.POSITIVE_INFINITY, maxMembers = Number.POSITIVE_INFINITY } = this.#checks;
    const { maxValues = Number.POSITIVE_INFINITY } = this.#checks;
    for (;;) {
      if (tokens.end >= until) return 'none_yet';
      const token = tokens.next();
      if (tokens.escaped && strings && (token === 'string' || token === 'name' || token === 'bad')) {
        const problem = this.#inString(strings.nulAllowedIn, token === 'name' || (token === 'bad' && tokens.isInName));
        if (problem) return problem;
      }
      if (token === 'name') {
        if (++this.#members > maxMembers) return this.#problem('members');
        this.bytes += OF_MEMBER + tokens.end - tokens.start;
        if (!this.#names.add(tokens.depth, this.#name())) return this.#problem('repeated_name');
        continue;
      }
      if (token !== 'close' && token !== 'end' && token !== 'bad' && token !== 'part' && ++this.#values > maxValues)
        return this.#problem('values');
      if (token === 'number') {
        this.bytes += OF_NUMBER;
        if (exactNumbers && !this.#isExact()) return this.#inexact();
      } else if (token === 'object' || token === 'array') {
        if (tokens.depth > maxDepth) return this.#problem('depth', tokens.depth - 1);
        this.#names.open(tokens.depth);
        this.bytes += token === 'object' ? OF_OBJECT : OF_ARRAY;
      } else if (token === 'string') {
        this.bytes += OF_STRING + tokens.end - tokens.start;
      } else if (token === 'literal') {
        this.bytes += OF_LITERAL;
      } else if (token === 'close') {
        this.#names.close(tokens.depth + 1);
      } else if (token === 'end') {
        return undefined;
      } else if (token === 'bad') {
        return { ...this.#problem('grammar'), detail: tokens.reason };
      }
    }
  }

  #name(): string {
    const { start, end, escaped } = this.#tokens;
    return escaped ? (JSON.parse(this.#text.slice(start, end)) as string) : this.#text.slice(start + 1, end - 1);
  }

  #isExact(): boolean {
    const { start, end, hasExponent } = this.#tokens;
    return (end - start <= ALWAYS_EXACT && !hasExponent) || isExactDecimal(this.#text.slice(start, end));
  }

  #inexact(): Problem {
    const { start, end } = this.#tokens;
    const written = this.#text.slice(start, Math.min(end, start + MAX_SHOWN));
    return { ...this.#problem('inexact_number'), detail: end - start > MAX_SHOWN ? `${written}…` : written };
  }

  #inString(nulAllowedIn: readonly string[], isName: boolean): Problem | undefined {
    const { nulAt, surrogateAt } = this.#tokens;
    const isNulFirst = nulAt !== -1 && (surrogateAt === -1 || nulAt < surrogateAt);
    if (isNulFirst && !this.#mayHoldNul(nulAllowedIn, isName)) return { ...this.#problem('nul'), at: nulAt };
    return surrogateAt === -1 ? undefined : { ...this.#problem('lone_surrogate'), at: surrogateAt };
  }

  #mayHoldNul(allowedIn: readonly string[], isName: boolean): boolean {
    const { depth } = this.#tokens;
    if (allowedIn.length === 0 || depth === 0 || (depth === 1 && isName)) return false;
    return this.#tokens.itemAt(1) === undefined && allowedIn.includes(this.#names.last(1, depth));
  }

  #problem(kind: Problem['kind'], depth = this.#tokens.depth): Problem {
    const place = Array.from(
      { length: depth },
      (_, outside) => this.#tokens.itemAt(outside + 1) ?? this.#names.last(outside + 1, depth),
    );
    return { kind, at: this.#tokens.start, place };
  }
}

/** An object with more names than this uses a set for look-ups. */
const SCAN_BELOW = 12;

/** The member names of the objects that enclose a place in a JSON text: detects duplicates, and returns the last name. */
class MemberNames {
  /** Names of all levels, the outermost first; the first `#count` are in use. */
  readonly #names: string[] = [];
  #count = 0;
  /** By level, from 1: the index of its first name, and its names as a set when there are many. */
  readonly #from: number[] = [0];
  readonly #sets: (Set<string> | undefined)[] = [undefined];

  /** Called when an object or array begins at this level. */
  open(level: number): void {
    this.#from[level] = this.#count;
    this.#sets[level] = undefined;
  }

  /** Called when it ends. */
  close(level: number): void {
    this.#count = this.#from[level] ?? 0;
  }

  /** Adds a name to the innermost object, at this level. Returns false when it has this name already. */
  add(level: number, name: string): boolean {
    const from = this.#from[level] ?? 0;
    const isNew = this.#count - from < SCAN_BELOW ? this.#isNew(from, name) : this.#isNewOfMany(level, from, name);
    this.#names[this.#count++] = name;
    return isNew;
  }

  /** Returns the last name of the object at this level, when the innermost is at `depth`; empty when it has none yet. */
  last(level: number, depth: number): string {
    const end = level === depth ? this.#count : (this.#from[level + 1] ?? 0);
    return end > (this.#from[level] ?? 0) ? (this.#names[end - 1] ?? '') : '';
  }

  #isNew(from: number, name: string): boolean {
    for (let at = from; at < this.#count; at++) if (this.#names[at] === name) return false;
    return true;
  }

  #isNewOfMany(level: number, from: number, name: string): boolean {
    let set = this.#sets[level];
    if (set === undefined) {
      set = new Set(this.#names.slice(from, this.#count));
      this.#sets[level] = set;
    }
    if (set.has(name)) return false;
    set.add(name);
    return true;
  }
}
