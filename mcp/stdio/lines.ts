/** Splits a byte stream into lines of limited length. */
import { isUtf8 } from 'node:buffer';

const NEWLINE = 0x0a;
/** Bytes kept of each end of a line that is too long: a request has its id at one of them. */
const KEPT_BYTES = 512;

/** `not_utf8`: `text` has replacement characters for invalid bytes. */
export type Line = { kind: 'line' | 'not_utf8'; text: string } | { kind: 'too_long'; beginning: string; end: string };

/** Returns a function that takes chunks, and calls `onLine` with each complete line. */
export function lineReader(mostBytes: number, onLine: (line: Line) => void): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let length = 0;
  /** The kept ends of the current line, once it is too long. */
  let skipped: { beginning: Buffer; end: Buffer } | undefined;

  const take = (piece: Buffer): void => {
    if (skipped) {
      if (skipped.beginning.length < KEPT_BYTES)
        skipped.beginning = Buffer.concat([skipped.beginning, piece]).subarray(0, KEPT_BYTES);
      skipped.end = Buffer.concat([skipped.end, piece]).subarray(-KEPT_BYTES);
      return;
    }
    parts.push(piece);
    length += piece.length;
    if (length <= mostBytes) return;
    const whole = Buffer.concat(parts);
    skipped = { beginning: Buffer.from(whole.subarray(0, KEPT_BYTES)), end: Buffer.from(whole.subarray(-KEPT_BYTES)) };
    parts = [];
  };

  const finish = (): void => {
    const line: Line = skipped
      ? { kind: 'too_long', beginning: skipped.beginning.toString('utf8'), end: skipped.end.toString('utf8') }
      : decoded(Buffer.concat(parts));
    parts = [];
    length = 0;
    skipped = undefined;
    onLine(line);
  };

  return (chunk) => {
    let from = 0;
    for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
      take(chunk.subarray(from, at));
      finish();
      from = at + 1;
    }
    if (from < chunk.length) take(chunk.subarray(from));
  };
}

const decoded = (bytes: Buffer): Line => ({ kind: isUtf8(bytes) ? 'line' : 'not_utf8', text: bytes.toString('utf8') });
