/**
 * Parses the template of an operation's sentence, as a manifest writes it: `create an issue in **{1}/{2}**[: *{/title}*]`. `{…}` is a value of the call,
 * `**…**` the object of the call, `*…*` free text, `[a|b]` the first option whose values are all present, or nothing. A backslash escapes a character.
 */
import { sha256Hex } from '../crypto/canonical.ts';
import type { Operation } from '../policy/platform-rules.ts';
import type { AmountForm } from './money.ts';

/** The place of a value in a call. `names`: of members, from the top of the body; `*` is every element of a list. */
export type Place =
  | { at: 'path'; index: number }
  | { at: 'rest' }
  | { at: 'query'; name: string }
  | { at: 'body'; names: readonly string[] }
  | { at: 'amount'; amount: readonly string[]; currency: readonly string[]; form: AmountForm }
  | { at: 'subject'; names: readonly string[] }
  | { at: 'count'; names: readonly string[] }
  | { at: 'recipients' };

export type Piece =
  | { kind: 'text'; text: string }
  | { kind: 'value'; inner: readonly (string | Place)[]; strong: boolean; quoted: boolean }
  | { kind: 'choice'; options: readonly (readonly Piece[])[] };

/** `version`: a hash of the operation and the text. */
export type Template = { operation: Operation; pieces: readonly Piece[]; version: string };

const MAX_PLACES = 8;
const POINTER = /^(?:\/(?:[^~/\s]|~[01])*)+$/;
const FORMS =
  'write {1} for the first * of the path, {**} for its rest, {/title} for a member of the body, {?name} for a parameter of the query, {amount /amount /currency}, {recipients}, {subject /raw} or {count /files}';

/** @throws Error with a sentence that describes the problem and what to write */
export function compileTemplate(operation: Operation, text: string): Template {
  const reader = new Reader(text, operation);
  const pieces = reader.pieces('end');
  if (reader.places > MAX_PLACES) throw new Error(`names ${reader.places} values; at most ${MAX_PLACES} are allowed`);
  return { operation, pieces, version: sha256Hex(`${operation.source}\n${text}`).slice(0, 16) };
}

class Reader {
  #at = 0;
  places = 0;
  readonly #text: string;
  readonly #operation: Operation;

  constructor(text: string, operation: Operation) {
    if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(text)) throw new Error('has a character that cannot be seen');
    this.#text = text;
    this.#operation = operation;
  }

  /** Parses up to the end, or in a choice up to the next `|` or `]`, which is not consumed. */
  pieces(until: 'end' | 'choice'): Piece[] {
    const found: Piece[] = [];
    let text = '';
    const flush = () => {
      if (text !== '') found.push({ kind: 'text', text });
      text = '';
    };
    const take = (piece: Piece) => {
      flush();
      found.push(piece);
    };
    while (this.#at < this.#text.length) {
      const next = this.#text[this.#at] ?? '';
      if (until === 'choice' && (next === '|' || next === ']')) break;
      if (next === '{') take({ kind: 'value', inner: [this.#place()], strong: false, quoted: false });
      else if (next === '*') take(this.#emphasised());
      else if (next === '[') take(this.#choice(until));
      else if (next === ']' || next === '}')
        throw new Error(`has a "${next}" too many; write "\\${next}" for the character`);
      else text += this.#character();
    }
    flush();
    return found;
  }

  #character(): string {
    if (this.#text[this.#at] === '\\') this.#at += 1;
    const character = this.#text[this.#at];
    if (character === undefined) throw new Error('ends in a backslash');
    this.#at += 1;
    return character;
  }

  #emphasised(): Piece {
    const mark = this.#text.startsWith('**', this.#at) ? '**' : '*';
    this.#at += mark.length;
    const inner: (string | Place)[] = [];
    while (!this.#text.startsWith(mark, this.#at)) {
      const next = this.#text[this.#at];
      if (next === undefined) throw new Error(`has a "${mark}" that is not closed`);
      if (next === '[' || next === ']' || next === '*')
        throw new Error(`has a "${next}" between "${mark}" and "${mark}"`);
      inner.push(next === '{' ? this.#place() : this.#character());
    }
    this.#at += mark.length;
    if (!inner.some((one) => typeof one === 'object')) throw new Error(`has no value between "${mark}" and "${mark}"`);
    return { kind: 'value', inner: joined(inner), strong: mark === '**', quoted: mark === '*' };
  }

  #choice(until: 'end' | 'choice'): Piece {
    if (until === 'choice') throw new Error('has a "[" inside of "[…]"');
    const options: Piece[][] = [];
    do {
      this.#at += 1;
      options.push(this.pieces('choice'));
    } while (this.#text[this.#at] === '|');
    if (this.#text[this.#at] !== ']') throw new Error('has a "[" that is not closed');
    this.#at += 1;
    return { kind: 'choice', options };
  }

  #place(): Place {
    const end = this.#text.indexOf('}', this.#at);
    if (end < 0) throw new Error('has a "{" that is not closed');
    const text = this.#text.slice(this.#at + 1, end);
    this.#at = end + 1;
    this.places += 1;
    return this.#read(text);
  }

  #read(text: string): Place {
    const [word = '', ...pointers] = text.split(' ');
    if (/^[1-9]$/.test(text)) return this.#parameter(Number(text) - 1);
    if (text === '**') return this.#rest();
    if (text === 'recipients') return { at: 'recipients' };
    if (/^\?[^\s?&={}]+$/.test(text)) return this.#ofQuery(text.slice(1));
    if (text.startsWith('/')) return { at: 'body', names: this.#names(text) };
    const [first, second, form] = pointers;
    if ((word === 'subject' || word === 'count') && first !== undefined && pointers.length === 1)
      return { at: word, names: this.#names(first) };
    const isAmount = word === 'amount' && (form === undefined || form === 'decimal') && pointers.length <= 3;
    if (isAmount && first !== undefined && second !== undefined)
      return { at: 'amount', amount: this.#names(first), currency: this.#names(second), form: form ?? 'minor' };
    throw new Error(`has {${text}}, which is no value of a call; ${FORMS}`);
  }

  #segments(what: string): readonly string[] {
    if (this.#operation.kind !== 'http') throw new Error(`has ${what}, but the operation has no path`);
    return this.#operation.path.segments;
  }

  #parameter(index: number): Place {
    const wild = this.#segments(`{${index + 1}}`).filter((segment) => segment !== '**' && segment.includes('*'));
    if (index >= wild.length) throw new Error(`has {${index + 1}}, but the path has ${wild.length} "*"`);
    return { at: 'path', index };
  }

  #rest(): Place {
    const rests = this.#segments('{**}').filter((segment) => segment === '**').length;
    if (rests !== 1) throw new Error(`has {**}, but the path has ${rests} "**"`);
    return { at: 'rest' };
  }

  #ofQuery(name: string): Place {
    this.#segments(`{?${name}}`);
    return { at: 'query', name };
  }

  #names(pointer: string): string[] {
    if (!POINTER.test(pointer)) throw new Error(`has "${pointer}", which is no JSON pointer; write one such as /title`);
    if (this.#operation.kind === 'http' && this.#operation.method === 'GET')
      throw new Error(`has "${pointer}", but a GET has no body; write {?name} for a parameter of the query`);
    return pointer
      .slice(1)
      .split('/')
      .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
}

/** Merges adjacent characters to one text. */
function joined(inner: readonly (string | Place)[]): (string | Place)[] {
  const all: (string | Place)[] = [];
  for (const one of inner) {
    const last = all.at(-1);
    if (typeof one === 'string' && typeof last === 'string') all[all.length - 1] = last + one;
    else all.push(one);
  }
  return all;
}
