/** Parses pkt-lines (gitprotocol-common, "pkt-line Format"), strictly: anything else is an error. */

export type PktLine = { kind: 'data'; data: Buffer } | { kind: 'flush' | 'delim' | 'response_end' };

/** The longest pkt-line, including its four digits (gitprotocol-common: 65520). */
export const MAX_PKT_LINE_LENGTH = 65_520;
const DIGITS = 4;
const HEX = /^[0-9a-fA-F]{4}$/;
const SPECIAL = ['flush', 'delim', 'response_end'] as const;

/**
 * Parses the pkt-line at `at`; `next` is where the following one begins.
 *
 * @returns `incomplete` while more bytes may complete it; `malformed` with a phrase when none can
 */
export function readPktLine(
  bytes: Buffer,
  at: number,
): { kind: 'line'; line: PktLine; next: number } | { kind: 'incomplete' } | { kind: 'malformed'; why: string } {
  const text = bytes.toString('latin1', at, Math.min(at + DIGITS, bytes.length));
  if (text.length < DIGITS)
    return /^[0-9a-fA-F]*$/.test(text) ? { kind: 'incomplete' } : malformed('a length is not four hexadecimal digits');
  if (!HEX.test(text)) return malformed('a length is not four hexadecimal digits');
  const length = Number.parseInt(text, 16);
  const special = SPECIAL[length];
  if (special !== undefined) return { kind: 'line', line: { kind: special }, next: at + DIGITS };
  if (length <= DIGITS) return malformed('a pkt-line is empty');
  if (length > MAX_PKT_LINE_LENGTH) return malformed(`a pkt-line is longer than ${MAX_PKT_LINE_LENGTH} bytes`);
  if (at + length > bytes.length) return { kind: 'incomplete' };
  return { kind: 'line', line: { kind: 'data', data: bytes.subarray(at + DIGITS, at + length) }, next: at + length };
}

const malformed = (why: string) => ({ kind: 'malformed' as const, why });

/** Parses pkt-lines from pieces; memory is bounded by the longest one. */
export class PktLineReader {
  #bytes = Buffer.alloc(DIGITS);
  #size = 0;
  #wanted = DIGITS;
  #isMalformed = false;

  /** Yields the lines that this piece completes; none after malformed input. The data of a line is overwritten by the next one. */
  *read(piece: Uint8Array): Generator<PktLine, void, undefined> {
    for (let at = 0; at < piece.length && !this.#isMalformed; ) {
      const taken = piece.subarray(at, at + this.#wanted - this.#size);
      this.#bytes.set(taken, this.#size);
      this.#size += taken.length;
      at += taken.length;
      if (this.#size < this.#wanted) return;
      const read = readPktLine(this.#bytes.subarray(0, this.#size), 0);
      if (read.kind === 'line') {
        this.#size = 0;
        this.#wanted = DIGITS;
        yield read.line;
      } else if (read.kind === 'malformed') this.#isMalformed = true;
      else this.#want(Number.parseInt(this.#bytes.toString('latin1', 0, DIGITS), 16));
    }
  }

  #want(length: number): void {
    this.#wanted = length;
    if (length <= this.#bytes.length) return;
    const longer = Buffer.alloc(length);
    this.#bytes.copy(longer, 0, 0, this.#size);
    this.#bytes = longer;
  }
}
