// biome-ignore-all lint/style/noNonNullAssertion: typed arrays and buffers, read within their bounds; a check per byte would cost on every answer.
/**
 * Canonical views of bytes, in which an escaped credential appears unescaped: escapes of JSON, URLs and HTML are decoded, white space and
 * NULs removed. Each runs in place and in one pass, because every response is searched.
 */

/** Bytes that are being canonicalised; each step changes them in place. */
export type View = {
  bytes: Buffer;
  /** How many of `bytes` are in use. */
  length: number;
  /** Whether they contain a character that begins an escape; otherwise nothing needs decoding. */
  hasMarker: boolean;
  /** For each byte, its start and end in the original. */
  origin: { from: Uint32Array; to: Uint32Array } | undefined;
};

/** Class of each byte value: `SKIP`, `KEEP`, or `MARKER` (kept, and may begin an escape). */
export type Classes = Readonly<Uint8Array>;
const [SKIP, KEEP, MARKER] = [0, 1, 3];
const [PERCENT, AMPERSAND, BACKSLASH] = [0x25, 0x26, 0x5c];

/** NULs are removed, so that ASCII in UTF-16 of either byte order reads like ASCII. */
export const KEEP_WHITE_SPACE: Classes = classesWithout([0]);
export const SKIP_WHITE_SPACE: Classes = classesWithout([0, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20]);

/** Value of a hexadecimal digit, 16 for any other byte. */
const HEX = new Uint8Array(256).fill(16);
for (let digit = 0; digit < 16; digit++) {
  HEX[digit.toString(16).charCodeAt(0)] = digit;
  HEX[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}
/** Single-letter escapes of JSON (RFC 8259 §7) and JavaScript. */
const CONTROLS: Readonly<Record<number, number>> = { 98: 8, 102: 12, 110: 10, 114: 13, 116: 9, 118: 11, 48: 0 };
/** HTML's named character references for ASCII (HTML §13.5); no name is longer than `LONGEST_NAME`. */
const NAMED = new Map(
  Object.entries({
    amp: '&',
    AMP: '&',
    lt: '<',
    LT: '<',
    gt: '>',
    GT: '>',
    quot: '"',
    QUOT: '"',
    apos: "'",
    Tab: '\t',
    NewLine: '\n',
    nbsp: ' ',
    excl: '!',
    num: '#',
    dollar: '$',
    percnt: '%',
    lpar: '(',
    rpar: ')',
    ast: '*',
    midast: '*',
    plus: '+',
    comma: ',',
    period: '.',
    sol: '/',
    colon: ':',
    semi: ';',
    equals: '=',
    quest: '?',
    commat: '@',
    lsqb: '[',
    lbrack: '[',
    bsol: '\\',
    rsqb: ']',
    rbrack: ']',
    Hat: '^',
    lowbar: '_',
    UnderBar: '_',
    grave: '`',
    lcub: '{',
    lbrace: '{',
    vert: '|',
    verbar: '|',
    rcub: '}',
    rbrace: '}',
  }).map(([name, char]) => [name, char.charCodeAt(0)]),
);
const LONGEST_NAME = 8;
/** Also recognised without their semicolon. */
const WITHOUT_SEMICOLON = /^(?:amp|lt|gt|quot)$/i;
/** `escapeAt` returns one number: the length of the escape times this, plus the code point. */
const LENGTH = 0x1000000;

function classesWithout(skipped: readonly number[]): Classes {
  const classes = new Uint8Array(256).fill(KEEP);
  for (const byte of skipped) classes[byte] = SKIP;
  for (const byte of [PERCENT, AMPERSAND, BACKSLASH]) classes[byte] = MARKER;
  return classes;
}

/** Returns the classes for every non-empty subset of the markers. */
export function choicesOfMarkers(classes: Classes): Classes[] {
  const markers = [PERCENT, AMPERSAND, BACKSLASH];
  return [1, 2, 3, 4, 5, 6, 7].map((choice) => {
    const some = Uint8Array.from(classes);
    for (const [at, marker] of markers.entries()) if ((choice & (1 << at)) === 0) some[marker] = KEEP;
    return some;
  });
}

/** Creates a view of the bytes. `mapped`: with the origin of each byte, which costs eight bytes each. */
export function viewOf(source: Uint8Array, classes: Classes, mapped = false): View {
  const bytes = Buffer.allocUnsafe(source.length);
  const origin = mapped ? { from: new Uint32Array(source.length), to: new Uint32Array(source.length) } : undefined;
  let length = 0;
  let seen = 0;
  for (let i = 0; i < source.length; i++) {
    const byte = source[i]!;
    const kind = classes[byte]!;
    bytes[length] = byte;
    if (origin !== undefined) {
      origin.from[length] = i;
      origin.to[length] = i + 1;
    }
    length += kind & KEEP;
    seen |= kind;
  }
  return { bytes, length, hasMarker: seen === MARKER, origin };
}

/** Decodes one layer of escapes, in place. Returns false when there was none. */
export function undoEscapes(view: View, classes: Classes): boolean {
  const { bytes, length } = view;
  let at = 0;
  let out = 0;
  let seen = 0;
  let undone = false;
  while (at < length) {
    const byte = bytes[at]!;
    const found = classes[byte] === MARKER ? escapeAt(bytes, at, length) : 0;
    const end = at + (found === 0 ? 1 : Math.trunc(found / LENGTH));
    const code = found === 0 ? byte : found % LENGTH;
    if (found !== 0) undone = true;
    if (code < 0x80 || byte === PERCENT || found === 0) {
      const kind = classes[code]!;
      bytes[out] = code;
      if (view.origin !== undefined) setOrigin(view.origin, out, at, end);
      out += kind & KEEP;
      seen |= kind;
    } else {
      const size = writeUtf8(bytes, out, code);
      if (view.origin !== undefined) for (let i = out; i < out + size; i++) setOrigin(view.origin, i, at, end);
      out += size;
    }
    at = end;
  }
  view.length = out;
  view.hasMarker = seen === MARKER;
  return undone;
}

function setOrigin({ from, to }: NonNullable<View['origin']>, place: number, at: number, end: number): void {
  const first = from[at]!;
  to[place] = to[end - 1]!;
  from[place] = first;
}

/** Writes a code point, a lone surrogate included, as UTF-8. An escape is never shorter than its decoded form. */
function writeUtf8(bytes: Buffer, at: number, code: number): number {
  let rest = code;
  const size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (let i = at + size - 1; i > at; i--) {
    bytes[i] = 0x80 | (rest & 0x3f);
    rest >>= 6;
  }
  bytes[at] = ((0xf00 >> size) & 0xff) | rest;
  return size;
}

/** Decodes the escape that begins at a marker. Returns its length times `LENGTH` plus the code point, or 0 when there is none. */
function escapeAt(bytes: Buffer, at: number, length: number): number {
  const byte = bytes[at]!;
  if (at + 1 >= length) return 0;
  if (byte === PERCENT) return hexAt(bytes, at, 1, 2, length);
  return byte === BACKSLASH ? backslashAt(bytes, at, length) : entityAt(bytes, at, length);
}

/** Reads `digits` hexadecimal digits, `skip` bytes after the marker. */
function hexAt(bytes: Buffer, at: number, skip: number, digits: number, length: number): number {
  if (at + skip + digits > length) return 0;
  let code = 0;
  for (let i = at + skip; i < at + skip + digits; i++) {
    const digit = HEX[bytes[i]!]!;
    if (digit === 16) return 0;
    code = code * 16 + digit;
  }
  return (skip + digits) * LENGTH + code;
}

function backslashAt(bytes: Buffer, at: number, length: number): number {
  const next = bytes[at + 1]!;
  if (next === 0x75) return bytes[at + 2] === 0x7b ? bracedAt(bytes, at, length) : hexAt(bytes, at, 2, 4, length);
  if (next === 0x78) return hexAt(bytes, at, 2, 2, length);
  const control = CONTROLS[next];
  if (control !== undefined) return 2 * LENGTH + control;
  const isWord = next >= 0x80 || (next >= 0x30 && next <= 0x39) || ((next | 0x20) >= 0x61 && (next | 0x20) <= 0x7a);
  return isWord ? 0 : 2 * LENGTH + next;
}

/** JavaScript's `\u{1F600}`. */
function bracedAt(bytes: Buffer, at: number, length: number): number {
  let end = at + 3;
  while (end < length && end < at + 9 && HEX[bytes[end]!]! < 16) end++;
  if (end === at + 3 || end >= length || bytes[end] !== 0x7d) return 0;
  return hexAt(bytes, at, 3, end - at - 3, length) + LENGTH;
}

function entityAt(bytes: Buffer, at: number, length: number): number {
  let end = at + 1;
  if (bytes[end] === 0x23) {
    const isHex = (bytes[end + 1]! | 0x20) === 0x78;
    const first = isHex ? end + 2 : end + 1;
    const base = isHex ? 16 : 10;
    let code = 0;
    for (end = first; end < length && end < first + 8 && HEX[bytes[end]!]! < base; end++)
      code = code * base + HEX[bytes[end]!]!;
    if (end === first || code > 0x10ffff) return 0;
    return (end - at + (end < length && bytes[end] === 0x3b ? 1 : 0)) * LENGTH + code;
  }
  while (end < length && end <= at + LONGEST_NAME && (bytes[end]! | 0x20) >= 0x61 && (bytes[end]! | 0x20) <= 0x7a)
    end++;
  if (end < at + 3) return 0;
  const name = bytes.toString('latin1', at + 1, end);
  const isClosed = end < length && bytes[end] === 0x3b;
  const code = NAMED.get(name);
  if (code === undefined || !(isClosed || WITHOUT_SEMICOLON.test(name))) return 0;
  return (end - at + (isClosed ? 1 : 0)) * LENGTH + code;
}
