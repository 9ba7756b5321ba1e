/**
 * Looks for a member of JSON by which some servers take another method, in a body that is not read as JSON here: one that is too long for
 * it, or whose type does not say plainly that it is JSON. Linear in the body.
 */
import { namesMethod } from '../policy/endpoint.ts';

const METHOD = /^\s{0,9}(?:get|head|post|put|patch|delete|options|trace|connect)\s{0,9}$/i;
/** Whether the value of such a member is a method. */
export const isMethodText = (text: string): boolean => METHOD.test(text);

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
/** In bytes. Longer ones are neither such a name nor a method. */
const MOST_TEXT = 1024;

/** Of the members of the object that a body is, those of the objects in it left out. */
export class JsonSearch {
  /** Undefined: no character that counts has come yet. */
  #isObject: boolean | undefined;
  #depth = 0;
  #isName = true;
  /** As it is written. */
  #name: string | undefined;
  #inText = false;
  #isEscaped = false;
  /** As much of a text at the top as came in earlier pieces; undefined: it is too long to count. */
  #text: string | undefined = '';

  /** @returns the name of such a member, once its value has come */
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
    const isLong = this.#text.length + to - from > MOST_TEXT;
    this.#text = isLong ? undefined : this.#text + json.toString('latin1', from, to);
  }

  #endText(json: Buffer, from: number, to: number): string | undefined {
    this.#keep(json, from, to);
    const text = this.#text;
    this.#text = '';
    if (this.#isName) this.#name = text;
    if (this.#isName || text === undefined || this.#name === undefined || !isMethodText(unescaped(text)))
      return undefined;
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

/** Empty where it is no text of JSON. */
function unescaped(text: string): string {
  if (PLAIN.test(text)) return text;
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return '';
  }
}
