/** Masks text that comes in pieces of its own: events of a stream (HTML, Server-sent events), and JSON line by line. */
import { MASKED, type MaskedText, type Masking, maskJson, maskValues } from './mask-json.ts';

/** In which pieces a text comes: events, or lines of JSON (JSON Lines, JSON text sequences). */
export type Pieces = 'events' | 'lines';

/** A piece of more code units cannot be held back to be masked. */
const LONGEST_PIECE = 1024 * 1024;
const RECORD_SEPARATOR = '\u001e';
/** How streams of models end. */
const DONE = '[DONE]';

const PIECES: Readonly<Record<string, Pieces>> = {
  'text/event-stream': 'events',
  'application/x-ndjson': 'lines',
  'application/ndjson': 'lines',
  'application/jsonl': 'lines',
  'application/json-seq': 'lines',
};

/** @param type `type/subtype`, in lower case */
export const piecesOf = (type: string | undefined): Pieces | undefined =>
  type !== undefined && Object.hasOwn(PIECES, type) ? PIECES[type] : undefined;

/** Takes a text as it comes, and gives what of it is masked. */
export class PieceMasker {
  readonly #pieces: Pieces;
  readonly #masking: Masking;
  #held = '';
  #lines: string[] = [];
  #linesLength = 0;
  count = 0;

  constructor(pieces: Pieces, masking: Masking) {
    this.#pieces = pieces;
    this.#masking = masking;
  }

  /** @returns undefined: a piece is too long */
  push(text: string): string | undefined {
    this.#held += text;
    let out = '';
    // A line ends with LF, CR or both; of a CR that came last it is not known yet.
    for (let from = 0; ; ) {
      const [end, next] = lineEnd(this.#held, from);
      if (end < 0) {
        this.#held = this.#held.slice(from);
        break;
      }
      out += this.#line(this.#held.slice(from, end), this.#held.slice(end, next));
      from = next;
    }
    return this.#held.length + this.#linesLength > LONGEST_PIECE ? undefined : out;
  }

  end(): string {
    const rest = this.#held;
    this.#held = '';
    const last = rest.endsWith('\r') ? this.#line(rest.slice(0, -1), '\r') : rest === '' ? '' : this.#line(rest, '');
    return last + this.#event();
  }

  #line(line: string, ending: string): string {
    if (this.#pieces === 'lines') return this.#jsonLine(line) + ending;
    this.#lines.push(line + ending);
    this.#linesLength += line.length;
    return line === '' ? this.#event() : '';
  }

  #jsonLine(line: string): string {
    const from = line.startsWith(RECORD_SEPARATOR) ? 1 : 0;
    return line.slice(0, from) + this.#payload(line.slice(from));
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
    const masked = maskJson(text, this.#masking) ?? this.#plain(text);
    this.count += masked.count;
    return masked.text;
  }

  /** Which members a text is made of cannot be told. */
  #plain(text: string): MaskedText {
    const { members, values, isStrict } = this.#masking;
    return members && isStrict ? { text: MASKED, count: 1 } : maskValues(text, values);
  }

  /** A line without data. What is no field of an event, as of a document that is said to be events, becomes an empty comment; so does a comment. */
  #field(line: string): string {
    const { members, isStrict } = this.#masking;
    const [, name] = FIELD.exec(line) ?? [];
    if (!members || !isStrict || (name !== undefined && !members.masks([name]))) return this.#values(line);
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

/** Where a line ends, and the next one begins; -1: that has not come yet. */
function lineEnd(text: string, from: number): [end: number, next: number] {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x0a) return [at, at + 1];
    if (code !== 0x0d) continue;
    if (at + 1 === text.length) return [-1, -1];
    return [at, text.charCodeAt(at + 1) === 0x0a ? at + 2 : at + 1];
  }
  return [-1, -1];
}
