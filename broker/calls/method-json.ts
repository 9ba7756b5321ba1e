/**
 * Looks for a member of JSON by which some servers take another method, in a body that is not read as JSON here: one that is too long for
 * it, or whose type does not say plainly that it is JSON. Linear in the body.
 */
import { namesMethod } from '../policy/endpoint.ts';

const METHOD = /^\s{0,9}(?:get|head|post|put|patch|delete|options|trace|connect)\s{0,9}$/i;
/** Whether the value of such a member is a method. */
export const isMethodText = (text: string): boolean => METHOD.test(text);

const STRUCTURE = /["{}[\]:,]/g;
const IN_TEXT = /["\\]/g;
/** In characters. Longer ones are neither such a name nor a method. */
const MOST_TEXT = 1024;

/** Of the members of the object that a body is, those of the objects in it left out. */
export class JsonSearch {
  /** Undefined: no character that counts has come yet. */
  #isObject: boolean | undefined;
  #depth = 0;
  #isName = true;
  #name: string | undefined;
  #inText = false;
  #isEscaped = false;
  /** As much of a text as has come; undefined: it does not count. */
  #text: string | undefined;

  /** @returns the name of such a member, once its value has come */
  push(piece: Uint8Array): string | undefined {
    const json = Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('latin1');
    this.#isObject ??= /\S/.exec(json) ? /^\s*\{/.test(json) : undefined;
    for (let at = 0; this.#isObject && at < json.length; ) {
      if (this.#isEscaped) {
        this.#keep(json.charAt(at++));
        this.#isEscaped = false;
      }
      const pattern = this.#inText ? IN_TEXT : STRUCTURE;
      pattern.lastIndex = at;
      const end = pattern.exec(json)?.index ?? json.length;
      if (this.#inText) this.#keep(json.slice(at, end));
      if (end === json.length) return undefined;
      const found = this.#inText ? this.#endText(json.charAt(end)) : this.#step(json.charAt(end));
      if (found !== undefined) return found;
      at = end + 1;
    }
    return undefined;
  }

  end(): undefined {
    return undefined;
  }

  #keep(text: string): void {
    if (this.#text !== undefined) this.#text = this.#text.length > MOST_TEXT ? undefined : this.#text + text;
  }

  #endText(character: string): string | undefined {
    if (character === '\\') {
      this.#keep(character);
      this.#isEscaped = true;
      return undefined;
    }
    this.#inText = false;
    const text = this.#text === undefined ? undefined : unescaped(this.#text);
    if (this.#depth !== 1) return undefined;
    if (this.#isName) this.#name = text;
    else if (this.#name !== undefined && text !== undefined && isMethodText(text) && namesMethod(this.#name))
      return this.#name;
    return undefined;
  }

  #step(character: string): undefined {
    if (character === '"') {
      this.#inText = true;
      this.#text = this.#depth === 1 ? '' : undefined;
    } else if (character === '{' || character === '[') this.#depth++;
    else if (character === '}' || character === ']') this.#isObject = --this.#depth > 0;
    else if (this.#depth === 1) this.#isName = character === ',';
  }
}

/** Undefined: it is no text of JSON. */
function unescaped(text: string): string | undefined {
  try {
    return JSON.parse(`"${Buffer.from(text, 'latin1').toString('utf8')}"`);
  } catch {
    return undefined;
  }
}
