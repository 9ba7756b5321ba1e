/** Masks text that consists of pieces: events of a stream (HTML, Server-sent events), or JSON lines. */
import { looksLikeJson, MASKED, type MaskedText, type Masking, maskJson, maskValues } from './mask-json.ts';

/** The kind of pieces: events, or lines of JSON (JSON Lines). */
export type Pieces = 'events' | 'lines';

/** Longest piece, in code units, that is held back for masking. */
const MAX_PIECE_LENGTH = 1024 * 1024;
/** The end marker of model streams. */
const DONE = '[DONE]';

const PIECES: Readonly<Record<string, Pieces>> = {
  'text/event-stream': 'events',
  'application/x-ndjson': 'lines',
  'application/ndjson': 'lines',
  'application/jsonl': 'lines',
};

/** @param type `type/subtype`, in lower case */
export const piecesOf = (type: string | undefined): Pieces | undefined =>
  type !== undefined && Object.hasOwn(PIECES, type) ? PIECES[type] : undefined;

/** Masks a text as it arrives. */
export class PieceMasker {
  readonly #pieces: Pieces;
  readonly #masking: Masking;
  #held: string[] = [];
  #heldLength = 0;
  #isCr = false;
  #lines: string[] = [];
  #linesLength = 0;
  count = 0;

  constructor(pieces: Pieces, masking: Masking) {
    this.#pieces = pieces;
    this.#masking = masking;
  }

  /** Takes more text and returns the masked part that is complete. @returns undefined when a piece is too long */
  push(text: string): string | undefined {
    // A line ends with LF, CR or both; after a trailing CR an LF may follow.
    const come = this.#isCr ? `\r${text}` : text;
    this.#isCr = come.endsWith('\r');
    const length = this.#isCr ? come.length - 1 : come.length;
    const out: string[] = [];
    for (let from = 0; from < length; ) {
      const [end, next] = lineEnd(come, from, length);
      this.#hold(come.slice(from, end));
      if (next === end) break;
      out.push(this.#line(this.#rest(), come.slice(end, next)));
      from = next;
    }
    return this.#heldLength + this.#linesLength > MAX_PIECE_LENGTH ? undefined : out.join('');
  }

  end(): string {
    const rest = this.#rest();
    const ending = this.#isCr ? '\r' : '';
    return (rest === '' && ending === '' ? '' : this.#line(rest, ending)) + this.#event();
  }

  /** Keeps the beginning of an incomplete line. */
  #hold(piece: string): void {
    if (piece === '') return;
    this.#held.push(piece);
    this.#heldLength += piece.length;
  }

  #rest(): string {
    const rest = this.#held.join('');
    this.#held = [];
    this.#heldLength = 0;
    return rest;
  }

  #line(line: string, ending: string): string {
    if (this.#pieces === 'lines') return this.#payload(line) + ending;
    this.#lines.push(line + ending);
    this.#linesLength += line.length;
    return line === '' ? this.#event() : '';
  }

  /** Masks an event; its data lines form one text. */
  #event(): string {
    const lines = this.#lines.splice(0);
    this.#linesLength = 0;
    const data = lines.filter(isData);
    if (data.length === 0) return lines.map((line) => this.#field(line)).join('');
    const text = data.map((line) => line.replace(/^data:? ?/, '').replace(/[\r\n]+$/, '')).join('\n');
    const masked = this.#payload(text);
    if (masked === text) return lines.map((line) => (isData(line) ? line : this.#field(line))).join('');
    // The last data line may have no line ending.
    const [last = ''] = /[\r\n]*$/.exec(data.at(-1) ?? '') ?? [];
    const written = `${masked
      .split('\n')
      .map((line) => `data: ${line}`)
      .join(last || '\n')}${last}`;
    const first = lines.findIndex(isData);
    return lines.flatMap((line, i) => (i === first ? written : isData(line) ? [] : [this.#field(line)])).join('');
  }

  #payload(text: string): string {
    if (text.trim() === '' || text === DONE) return text;
    // A line with a single string or number may be part of a longer JSON text, such as a masked list.
    const isWhole = this.#pieces === 'events' || looksLikeJson(text);
    const masked = (isWhole ? maskJson(text, this.#masking) : undefined) ?? this.#plain(text);
    this.count += masked.count;
    return masked.text;
  }

  /** Masks text that is not JSON: the members in it cannot be determined. */
  #plain(text: string): MaskedText {
    const { members, values, isStrict } = this.#masking;
    return members && (isStrict || members.isIn(text)) ? { text: MASKED, count: 1 } : maskValues(text, values);
  }

  /**
   * Masks a line without data. A line that is no field of an event (of a document declared as events) becomes an empty comment, as do
   * comments.
   */
  #field(line: string): string {
    const { members, isStrict } = this.#masking;
    const [, name] = FIELD.exec(line) ?? [];
    const isMasked = isStrict ? name === undefined || members?.isNamed(name) : members?.isIn(line);
    if (!members || !isMasked) return this.#values(line);
    const [ending = ''] = /[\r\n]*$/.exec(line) ?? [];
    const isEmpty = line.length === ending.length;
    if (!isEmpty && !line.startsWith(':')) this.count++;
    return isEmpty ? line : `:${ending}`;
  }

  #values(line: string): string {
    const { text, count } = maskValues(line, this.#masking.values);
    this.count += count;
    return text;
  }
}

const FIELD = /^(event|id|retry)(?::|[\r\n]|$)/;
const isData = (line: string): boolean => /^data(?::|[\r\n]|$)/.test(line);

/** Returns where a line ends and where the next one begins; both are the same when its end has not arrived. */
function lineEnd(text: string, from: number, length: number): [end: number, next: number] {
  for (let at = from; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x0a) return [at, at + 1];
    if (code === 0x0d) return [at, text.charCodeAt(at + 1) === 0x0a ? at + 2 : at + 1];
  }
  return [length, length];
}
