/**
 * Searches a body that is not read as JSON (too long, or its type is not plainly JSON) for a member that some servers take for the method,
 * or that the platform accepts from no agent. Linear in the body.
 */
import { namesMethod, refusedParameter } from '../policy/endpoint.ts';
import type { JsonObject } from '../policy/facts.ts';
import { isListed, type NameList } from '../policy/names.ts';
import type { Parsing } from '../runtime/long-bodies.ts';
import { inSlices, runToEnd } from '../runtime/pace.ts';

const METHOD = /^\s{0,9}(?:get|head|post|put|patch|delete|options|trace|connect)\s{0,9}$/i;
/** Whether the value of such a member is a method. */
const isMethodText = (text: string): boolean => METHOD.test(text);

const codeOf = (character: string): number => character.charCodeAt(0);
const QUOTE = codeOf('"');
const BACKSLASH = codeOf('\\');
const COMMA = codeOf(',');
const COLON = codeOf(':');
const OPEN = codeOf('{');
const OPEN_LIST = codeOf('[');
const CLOSE = codeOf('}');
const CLOSE_LIST = codeOf(']');
const SPACE = codeOf(' ');
/** In bytes. Longer texts are neither such a name nor a method. */
const MAX_TEXT_LENGTH = 1024;

/** Searches the members of the top-level object; nested objects are skipped. */
export class JsonSearch {
  readonly #refused: NameList | undefined;
  /** Undefined until the first significant character. */
  #isObject: boolean | undefined;
  #depth = 0;
  #isName = true;
  /** As written, still escaped. */
  #name: string | undefined;
  #inText = false;
  #isEscaped = false;
  /** The part of a top-level text that came in earlier pieces; undefined when it is too long to matter. */
  #text: string | undefined = '';

  /** @param refused names of members that are found whatever their value */
  constructor(refused?: NameList) {
    this.#refused = refused;
  }

  /** @returns the name of such a member once its value is complete, or once its name is complete when that is refused */
  push(piece: Uint8Array): string | undefined {
    const json = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    let begun = 0;
    for (let at = 0; at < json.length && this.#isObject !== false; at++) {
      const code = json[at] ?? 0;
      if (this.#inText) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === BACKSLASH) this.#isEscaped = true;
        else if (code === QUOTE) {
          this.#inText = false;
          const found = this.#depth === 1 ? this.#endText(json, begun, at) : undefined;
          if (found !== undefined) return found;
        }
      } else if (code === QUOTE) {
        this.#inText = true;
        this.#isObject ??= false;
        begun = at + 1;
      } else if (code > SPACE) this.#step(code);
    }
    if (this.#inText && this.#depth === 1) this.#keep(json, begun, json.length);
    return undefined;
  }

  end(): undefined {
    return undefined;
  }

  #keep(json: Buffer, from: number, to: number): void {
    if (this.#text === undefined) return;
    const isLong = this.#text.length + to - from > MAX_TEXT_LENGTH;
    this.#text = isLong ? undefined : this.#text + json.toString('latin1', from, to);
  }

  #endText(json: Buffer, from: number, to: number): string | undefined {
    this.#keep(json, from, to);
    const text = this.#text;
    this.#text = '';
    if (this.#isName) {
      this.#name = text;
      const written = this.#refused && text !== undefined ? unescaped(text) : '';
      return this.#refused && isListed(this.#refused, written) ? written : undefined;
    }
    if (text === undefined || this.#name === undefined || !isMethodText(unescaped(text))) return undefined;
    const name = unescaped(this.#name);
    return namesMethod(name) ? name : undefined;
  }

  #step(code: number): void {
    this.#isObject ??= code === OPEN;
    if (code === OPEN || code === OPEN_LIST) this.#depth++;
    else if (code === CLOSE || code === CLOSE_LIST) this.#isObject = --this.#depth > 0;
    else if (this.#depth === 1 && code === COMMA) this.#isName = true;
    else if (this.#depth === 1 && code === COLON) this.#isName = false;
  }
}

const PLAIN = /^[ -[\]-~]*$/;

/** Unescapes a JSON string; empty when it is malformed. */
function unescaped(text: string): string {
  if (PLAIN.test(text)) return text;
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return '';
  }
}

/**
 * Returns a sentence about a member that Symfony and Laravel take for the method, as they do with a form field, or that is refused. A
 * member with any other value is data: `"_method": "card"`. Yields when there are many members.
 */
export function* methodMember(object: JsonObject, refused?: NameList): Generator<void, string | undefined> {
  const names = Object.keys(object);
  for (const [at, name] of names.entries()) {
    const value = object[name];
    if (typeof value === 'string' && isMethodText(value) && namesMethod(name)) return namesMethodSentence(name);
    if (refused && isListed(refused, name)) return refusedParameter('body', name);
    if (at % MEMBERS_PER_SLICE === MEMBERS_PER_SLICE - 1) yield;
  }
  return undefined;
}

const MEMBERS_PER_SLICE = 2_000;

/** The same, in slices when there are many members. */
export const methodMemberInTurns = (
  object: JsonObject,
  parsing: Parsing,
  refused?: NameList,
): string | undefined | Promise<string | undefined> =>
  hasManyMembers(object)
    ? parsing.inTurn((rest) => inSlices(methodMember(object, refused), rest))
    : runToEnd(methodMember(object, refused));

function hasManyMembers(object: JsonObject): boolean {
  let count = 0;
  for (const _ in object) if (++count > MEMBERS_PER_SLICE) return true;
  return false;
}

/** The error text for a body that names a method. */
export const namesMethodSentence = (name: string): string =>
  `The body names a method (${JSON.stringify(name.slice(0, 100).toWellFormed())}); the method of a call is that of its request.`;
