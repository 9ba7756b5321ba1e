/** Masks members and values in JSON text. What is not masked stays as it was written, so that numbers keep their digits. */
import { JsonTokens, type Token } from '../../json/tokens.ts';
import type { MemberMask } from '../policy/mask-members.ts';
import { type ValueKind, valuesOf } from '../policy/value-kinds.ts';

/** What stands in the place of a text. Anything else becomes null. */
export const MASKED = '[masked]';

/** What to mask. `isToolResult`: it is the result of a tool of an MCP server, whose texts and bytes are JSON or are masked as a whole. */
export type Masking = {
  members: MemberMask | undefined;
  values: readonly ValueKind[];
  /** An answer in which it cannot be told what to mask is withheld. */
  isStrict: boolean;
  isToolResult: boolean;
};

/** `count`: how many members and values were masked. */
export type MaskedText = { text: string; count: number };

const WHOLE: MaskedText = { text: MASKED, count: 1 };

/** JSON in a string of JSON, and so on: deeper ones are masked as a whole. */
const MOST_NESTED = 4;

/** Masks values of text that is no JSON. */
export function maskValues(text: string, kinds: readonly ValueKind[]): MaskedText {
  let masked = text;
  let count = 0;
  for (const kind of kinds) {
    let out = '';
    let at = 0;
    for (const { from, to } of valuesOf(kind, masked)) {
      if (from < at) continue;
      out += `${masked.slice(at, from)}${MASKED}`;
      at = to;
      count++;
    }
    if (at > 0) masked = out + masked.slice(at);
  }
  return { text: masked, count };
}

/** @returns undefined where the text is not JSON */
export function maskJson(text: string, masking: Masking, nested = 0): MaskedText | undefined {
  return new JsonMasker(text, masking, nested).run();
}

/** Of the result of a tool: what holds bytes, and what holds text (MCP, Tool Result). */
const TOOL_BYTES = /^content\/\d+\/(?:data|resource\/blob)$/;
const TOOL_TEXT = /^content\/\d+\/(?:text|resource\/text)$/;
const STRUCTURED = 'structuredContent';

class JsonMasker {
  readonly #text: string;
  readonly #tokens: JsonTokens;
  readonly #masking: Masking;
  readonly #nested: number;
  /** Names and indexes from the root to the value that is read. */
  readonly #path: (string | number)[] = [];
  readonly #out: string[] = [];
  #copied = 0;
  #count = 0;
  /** Names that were masked, each with a number of its own: two members of one object keep two names. */
  #names = 0;

  constructor(text: string, masking: Masking, nested: number) {
    this.#text = text;
    this.#tokens = new JsonTokens(text);
    this.#masking = masking;
    this.#nested = nested;
  }

  run(): MaskedText | undefined {
    const tokens = this.#tokens;
    for (;;) {
      const token = tokens.next();
      if (token === 'end') break;
      if (token === 'bad') return undefined;
      if (token === 'close') continue;
      if (token === 'name') {
        this.#path.length = tokens.depth;
        this.#path[tokens.depth - 1] = this.#name();
      } else if (!this.#value(token)) return undefined;
    }
    if (this.#count === 0) return { text: this.#text, count: 0 };
    this.#out.push(this.#text.slice(this.#copied));
    return { text: this.#out.join(''), count: this.#count };
  }

  #name(): string {
    const name = this.#string();
    const { count } = maskValues(name, this.#masking.values);
    if (count > 0) this.#replace(JSON.stringify(`${MASKED} ${++this.#names}`), count);
    return name;
  }

  /** False: the text ends in the middle of it. */
  #value(token: Token): boolean {
    const tokens = this.#tokens;
    const isOpening = token === 'object' || token === 'array';
    const level = isOpening ? tokens.depth - 1 : tokens.depth;
    const item = level > 0 ? tokens.itemAt(level) : undefined;
    this.#path.length = level;
    if (item !== undefined) this.#path[level - 1] = item;
    if (this.#isMasked()) return this.#mask(token);
    if (token === 'string') this.#maskString();
    else if (token === 'number' && this.#masking.values.includes('card') && isCard(this.#raw())) this.#replace('null');
    return true;
  }

  #isMasked(): boolean {
    const { members, isToolResult } = this.#masking;
    if (members === undefined || this.#path.length === 0) return false;
    if (members.masks(this.#path)) return true;
    // What a tool says is one step further in.
    return isToolResult && this.#path.length > 1 && this.#path[0] === STRUCTURED && members.masks(this.#path.slice(1));
  }

  /** Masks the whole value that begins with the token. */
  #mask(token: Token): boolean {
    const tokens = this.#tokens;
    if (token === 'string') this.#replace(JSON.stringify(MASKED));
    else if (token === 'object' || token === 'array') {
      const from = tokens.start;
      const outside = tokens.depth - 1;
      while (tokens.depth > outside) if (tokens.next() === 'bad') return false;
      this.#put('null', from, tokens.end, 1);
    } else if (this.#raw() !== 'null') this.#replace('null');
    return true;
  }

  #maskString(): void {
    const { members, values, isStrict, isToolResult } = this.#masking;
    const place = isToolResult ? this.#path.join('/') : '';
    if (isToolResult && isStrict && TOOL_BYTES.test(place)) {
      this.#replace(JSON.stringify(MASKED));
      return;
    }
    const text = this.#string();
    const inner = members && this.#inString(text);
    // Which members a text is made of cannot be told.
    const isUnclear = !inner && isToolResult && isStrict && members && TOOL_TEXT.test(place);
    const { text: masked, count } = isUnclear || inner === 'too_deep' ? WHOLE : (inner ?? maskValues(text, values));
    if (count > 0) this.#replace(JSON.stringify(masked), count);
  }

  /** JSON that stands in a string. Undefined: it is none. */
  #inString(text: string): MaskedText | 'too_deep' | undefined {
    if (!/^\s*[[{]/.test(text)) return undefined;
    if (this.#nested < MOST_NESTED) return maskJson(text, { ...this.#masking, isToolResult: false }, this.#nested + 1);
    return 'too_deep';
  }

  #raw(): string {
    return this.#text.slice(this.#tokens.start, this.#tokens.end);
  }

  #string(): string {
    const { start, end, escaped } = this.#tokens;
    return escaped ? (JSON.parse(this.#text.slice(start, end)) as string) : this.#text.slice(start + 1, end - 1);
  }

  #replace(by: string, count = 1): void {
    this.#put(by, this.#tokens.start, this.#tokens.end, count);
  }

  #put(by: string, from: number, to: number, count: number): void {
    this.#out.push(this.#text.slice(this.#copied, from), by);
    this.#copied = to;
    this.#count += count;
  }
}

/** A card's number that is written as a number. */
const isCard = (number: string): boolean => {
  for (const { from, to } of valuesOf('card', number)) if (from === 0 && to === number.length) return true;
  return false;
};
