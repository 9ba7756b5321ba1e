/** Masks members and values in JSON text. Unmasked parts keep their original text, so that numbers keep their digits. */
import { JsonTokens, type Token } from '../../../json/tokens.ts';
import type { MatchState, MemberMask } from '../../policy/masks/members.ts';
import { type ValueKind, valuesOf } from '../../policy/value-kinds.ts';

/** Replaces a masked text; any other masked value becomes null. */
export const MASKED = '[masked]';

/** What to mask. `isToolResult`: the JSON is the result of an MCP tool, whose texts and bytes must be JSON or are masked as a whole. */
export type Masking = {
  members: MemberMask | undefined;
  values: readonly ValueKind[];
  /** Whether an answer that cannot be masked reliably is withheld. */
  isStrict: boolean;
  isToolResult: boolean;
};

/** `count`: how many members and values were masked. */
export type MaskedText = { text: string; count: number };

/** Limit of JSON nested in JSON strings; deeper ones are masked as a whole. */
const MAX_NESTED = 4;
/** Deeper JSON is not read: it takes long and overflows other parsers. */
const MAX_DEPTH = 256;

const WHOLE: MaskedText = { text: MASKED, count: 1 };
const NOWHERE: MatchState = Object.freeze([]);

/** Whether a text may be a JSON object or list. */
export const looksLikeJson = (text: string): boolean => /^\s*[[{]/.test(text);

/** Masks values in text that is not JSON. */
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

/** @returns undefined when the text is not JSON, or is nested too deep */
export function maskJson(text: string, masking: Masking): MaskedText | undefined {
  const masked = new JsonMasker(text, masking, 0).run();
  return masked === 'too_deep' ? undefined : masked;
}

const STRUCTURED = 'structuredContent';

class JsonMasker {
  readonly #text: string;
  readonly #tokens: JsonTokens;
  readonly #masking: Masking;
  readonly #nested: number;
  /** Names and indexes from the root to the current value. */
  readonly #path: (string | number)[] = [];
  /** By level, for the object or list there: progress of the masked paths that lead to it. */
  readonly #led: MatchState[];
  readonly #out: string[] = [];
  #copied = 0;
  #count = 0;
  /** Number of masked names; each gets its own number, so that two members of one object keep distinct names. */
  #names = 0;

  constructor(text: string, masking: Masking, nested: number) {
    this.#text = text;
    this.#tokens = new JsonTokens(text);
    this.#masking = masking;
    this.#nested = nested;
    this.#led = [masking.members?.start ?? NOWHERE];
  }

  run(): MaskedText | 'too_deep' | undefined {
    const tokens = this.#tokens;
    for (;;) {
      const token = tokens.next();
      if (token === 'end') break;
      if (token === 'bad') return undefined;
      if (tokens.depth > MAX_DEPTH) return 'too_deep';
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

  /** Masks a value if needed. Returns false when the text ends within it. */
  #value(token: Token): boolean {
    const tokens = this.#tokens;
    const isOpening = token === 'object' || token === 'array';
    const level = isOpening ? tokens.depth - 1 : tokens.depth;
    const item = level > 0 ? tokens.itemAt(level) : undefined;
    this.#path.length = level;
    if (item !== undefined) this.#path[level - 1] = item;
    if (level > 0 && this.#isMasked(level, isOpening)) return this.#mask(token);
    if (token === 'string') this.#maskString();
    else if (token === 'number' && this.#masking.values.includes('card') && isCard(this.#raw())) this.#replace('null');
    return true;
  }

  #isMasked(level: number, isOpening: boolean): boolean {
    const { members, isToolResult } = this.#masking;
    const key = this.#path[level - 1];
    if (members === undefined || key === undefined) return false;
    const { led, isMasked } = members.step(this.#led[level - 1] ?? NOWHERE, key);
    // The tool's structured content is one level deeper than the paths expect.
    if (isOpening)
      this.#led[level] = isToolResult && level === 1 && key === STRUCTURED ? [...led, ...members.start] : led;
    return isMasked;
  }

  /** Masks the whole value that begins with this token. */
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
    const block = isToolResult && isStrict ? blockAt(this.#path) : undefined;
    if (block === 'bytes') {
      this.#replace(JSON.stringify(MASKED));
      return;
    }
    const text = this.#string();
    const inner = this.#inString(text);
    // The members in such a text cannot be determined.
    const isUnclear = inner === 'too_deep' || (!inner && block === 'text' && members);
    const { text: masked, count } = isUnclear ? WHOLE : ((inner as MaskedText | undefined) ?? maskValues(text, values));
    if (count > 0) this.#replace(JSON.stringify(masked), count);
  }

  /** Masks JSON within a string. Undefined when the string is not JSON. */
  #inString(text: string): MaskedText | 'too_deep' | undefined {
    if (!looksLikeJson(text)) return undefined;
    if (this.#nested === MAX_NESTED) return 'too_deep';
    return new JsonMasker(text, { ...this.#masking, isToolResult: false }, this.#nested + 1).run();
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

/** Whether a path in a tool result holds bytes or text (MCP, Tool Result). */
function blockAt(path: readonly (string | number)[]): 'bytes' | 'text' | undefined {
  const [content, index, member, inner] = path;
  if (content !== 'content' || typeof index !== 'number' || path.length > 4) return undefined;
  if (path.length === 3) return member === 'data' ? 'bytes' : member === 'text' ? 'text' : undefined;
  if (path.length < 3 || member !== 'resource') return undefined;
  return inner === 'blob' ? 'bytes' : inner === 'text' ? 'text' : undefined;
}

/** Whether a JSON number is a card number. */
const isCard = (number: string): boolean => {
  for (const { from, to } of valuesOf('card', number)) if (from === 0 && to === number.length) return true;
  return false;
};
