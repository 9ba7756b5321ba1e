// biome-ignore-all lint/style/noNonNullAssertion: typed arrays and buffers, read within their bounds; a check per byte would cost on every answer.
/** Finds base64 that encodes text within other bytes, at any alignment, and decodes it. */

/** Value of a character of base64 or base64url (RFC 4648 §4, §5), 64 for any other byte. */
const VALUE = new Uint8Array(256).fill(64);
for (const alphabet of ['+/', '-_'])
  for (const [value, char] of [
    ...`ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789${alphabet}`,
  ].entries())
    VALUE[char.charCodeAt(0)] = value;

/** Whether the byte is a character of base64 or base64url. */
export function isBase64(byte: number | undefined): boolean {
  return byte !== undefined && VALUE[byte] !== 64;
}

/** Bytes of text: printable ASCII, tab and line breaks. */
const TEXT = new Uint8Array(256);
for (let byte = 0x20; byte < 0x7f; byte++) TEXT[byte] = 1;
for (const byte of [0x09, 0x0a, 0x0d]) TEXT[byte] = 1;

/** Decodes only after so many consecutive groups of four characters that decode to text: by chance one in some 50,000 does. */
const GROUPS = 4;
/** Base64 length of the shortest credential searched for here, and so of anything that contains it. */
const SHORTEST_RUN = 22;

/**
 * Decodes the base64 that encodes text. All four alignments are tried, because characters before it may look like base64 too.
 *
 * @returns the decoded pieces, each followed by a NUL; undefined when there are none
 */
export function decodeBase64Runs(bytes: Buffer, length: number): Buffer | undefined {
  const pieces: number[] = [];
  let start = 0;
  while (start + SHORTEST_RUN <= length) {
    // From the end of the shortest run backwards: the first other byte rules out every run that contains it.
    let at = start + SHORTEST_RUN - 1;
    while (at >= start && VALUE[bytes[at]!] !== 64) at--;
    if (at < start) {
      at = start + SHORTEST_RUN;
      while (at < length && VALUE[bytes[at]!] !== 64) at++;
      addPieces(pieces, bytes, start, at);
    }
    start = at + 1;
  }
  return pieces.length === 0 ? undefined : decode(bytes, pieces);
}

/** Adds start and end of each piece of a run, including its neighbouring groups, some of whose bytes may belong to it. */
function addPieces(pieces: number[], bytes: Buffer, start: number, end: number): void {
  for (let alignment = 0; alignment < 4; alignment++) {
    let groups = 0;
    let at = start + alignment;
    for (; at + 4 <= end; at += 4) {
      if (isText(bytes, at)) groups++;
      else {
        if (groups >= GROUPS) pieces.push(Math.max(start + alignment, at - groups * 4 - 4), at + 4);
        groups = 0;
      }
    }
    if (groups >= GROUPS) pieces.push(Math.max(start + alignment, at - groups * 4 - 4), end);
  }
}

function isText(bytes: Buffer, at: number): boolean {
  const first = VALUE[bytes[at]!]!;
  if (first >= 32) return false;
  const second = VALUE[bytes[at + 1]!]!;
  const third = VALUE[bytes[at + 2]!]!;
  const last = VALUE[bytes[at + 3]!]!;
  const group = (first << 18) | (second << 12) | (third << 6) | last;
  return (TEXT[group >>> 16]! & TEXT[(group >>> 8) & 0xff]! & TEXT[group & 0xff]!) === 1;
}

function decode(bytes: Buffer, pieces: readonly number[]): Buffer {
  let size = 0;
  for (let i = 0; i < pieces.length; i += 2) size += Math.ceil(((pieces[i + 1]! - pieces[i]!) * 3) / 4) + 1;
  const decoded = Buffer.allocUnsafe(size);
  let out = 0;
  for (let i = 0; i < pieces.length; i += 2) {
    out += decoded.write(bytes.toString('latin1', pieces[i], pieces[i + 1]), out, 'base64');
    decoded[out++] = 0;
  }
  return decoded.subarray(0, out);
}
