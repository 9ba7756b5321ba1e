/** Masks text that comes in pieces of its own: events of a stream (HTML, Server-sent events), and JSON line by line. */
import { looksLikeJson, MASKED, type MaskedText, type Masking, maskJson, maskValues } from './mask-json.ts';

/** In which pieces a text comes: events, or lines of JSON (JSON Lines). */
export type Pieces = 'events' | 'lines';

/** A piece of more code units cannot be held back to be masked. */
const LONGEST_PIECE = 1024 * 1024;
/** How streams of models end. */
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

/** Takes a text as it comes, and gives what of it is masked. */
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

  /** @returns undefined: a piece is too long */
  push(text: string): string | undefined {
    // A line ends with LF, CR or both; of a CR that came last it is not known yet.
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
    return this.#heldLength + this.#linesLength > LONGEST_PIECE ? undefined : out.join('');
  }

  end(): string {
    const rest = this.#rest();
    const ending = this.#isCr ? '\r' : '';
    return (rest === '' && ending === '' ? '' : this.#line(rest, ending)) + this.#event();
  }

  /** Of a line whose end has not come. */
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

  /** The lines of an event, of which those with data are one text. */
  #event(): string {
    const lines = this.#lines.splice(0);
    this.#linesLength = 0;
    const data = lines.filter(isData);
    if (data.length === 0) return lines.map((line) => this.#field(line)).join('');
    const text = data.map((line) => line.replace(/^data:? ?/, '').replace(/[\r\n]+$/, '')).join('\n');
    const masked = this.#payload(text);
    if (masked === text) return lines.map((line) => (isData(line) ? line : this.#field(line))).join('');
    // What comes last may have no end.
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
    // A line that is one text or number may be of a longer JSON, as of a list that is masked.
    const isWhole = this.#pieces === 'events' || looksLikeJson(text);
    const masked = (isWhole ? maskJson(text, this.#masking) : undefined) ?? this.#plain(text);
    this.count += masked.count;
    return masked.text;
  }

  /** Which members a text is made of cannot be told. */
  #plain(text: string): MaskedText {
    const { members, values, isStrict } = this.#masking;
    return members && (isStrict || members.isIn(text)) ? { text: MASKED, count: 1 } : maskValues(text, values);
  }

  /** A line without data. What is no field of an event, as of a document that is said to be events, becomes an empty comment; so does a comment. */
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

/** Where a line ends, and the next one begins: the same where its end has not come. */
function lineEnd(text: string, from: number, length: number): [end: number, next: number] {
  for (let at = from; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x0a) return [at, at + 1];
    if (code === 0x0d) return [at, text.charCodeAt(at + 1) === 0x0a ? at + 2 : at + 1];
  }
  return [length, length];
}
