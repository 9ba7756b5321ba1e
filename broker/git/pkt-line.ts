/** Pkt-lines (gitprotocol-common, "pkt-line Format"), read strictly: what is not exactly one is an error. */

export type PktLine = { kind: 'data'; data: Buffer } | { kind: 'flush' | 'delim' | 'response_end' };

/** The length of the longest pkt-line, its four digits included (gitprotocol-common: 65520). */
export const LONGEST_PKT_LINE = 65_520;
const DIGITS = 4;
const HEX = /^[0-9a-fA-F]{4}$/;
const SPECIAL = ['flush', 'delim', 'response_end'] as const;

/**
 * The pkt-line that begins at `at`, and where the next one does.
 *
 * @returns `incomplete` while more bytes may make it one; `malformed` with a phrase when none can
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
  if (length > LONGEST_PKT_LINE) return malformed(`a pkt-line is longer than ${LONGEST_PKT_LINE} bytes`);
  if (at + length > bytes.length) return { kind: 'incomplete' };
  return { kind: 'line', line: { kind: 'data', data: bytes.subarray(at + DIGITS, at + length) }, next: at + length };
}

const malformed = (why: string) => ({ kind: 'malformed' as const, why });
