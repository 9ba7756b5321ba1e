// biome-ignore-all lint/style/noNonNullAssertion: typed arrays and buffers, read within their bounds; a check per byte would cost on every answer.
/** Decodes the escapes of JSON, JavaScript, URLs and HTML in which an upstream may echo a credential. */

/** Begin an escape: `%`, `&` and a backslash. */
export const [PERCENT, AMPERSAND, BACKSLASH] = [0x25, 0x26, 0x5c];

/** Value of a hexadecimal digit, 16 for any other byte. */
const HEX = new Uint8Array(256).fill(16);
for (let digit = 0; digit < 16; digit++) {
  HEX[digit.toString(16).charCodeAt(0)] = digit;
  HEX[digit.toString(16).toUpperCase().charCodeAt(0)] = digit;
}
/** Single-letter escapes of JSON (RFC 8259 §7) and JavaScript. */
const CONTROLS: Readonly<Record<number, number>> = { 98: 8, 102: 12, 110: 10, 114: 13, 116: 9, 118: 11, 48: 0 };
/** HTML's named character references for ASCII (HTML §13.5), by `keyOf` of the name; no name is longer than `MAX_NAME_LENGTH`. */
const NAMED = byKey({
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
});
const MAX_NAME_LENGTH = 8;
/** Also recognised without their semicolon. */
const WITHOUT_SEMICOLON = byKey({ amp: '&', AMP: '&', lt: '<', LT: '<', gt: '>', GT: '>', quot: '"', QUOT: '"' });
/** `escapeAt` returns one number: the code point in the lower bits, and the length of the escape in the bits from `LENGTH_BITS` on. */
export const [LENGTH_BITS, CODE_POINT] = [24, 0xffffff];
const LENGTH = 2 ** LENGTH_BITS;

/** The code of each character by its name, as a number: to look up a string would cost several times as much. */
function byKey(names: Readonly<Record<string, string>>): ReadonlyMap<number, number> {
  const keyOf = (name: string) => Buffer.from(name).reduce(withLetter, 0);
  return new Map(Object.entries(names).map(([name, char]) => [keyOf(name), char.charCodeAt(0)]));
}

/** Appends a letter to the key of a name: six bits each, which differ for all letters. */
function withLetter(key: number, letter: number): number {
  return key * 64 + (letter & 63);
}

/** Decodes the escape that begins at a marker. Returns its length and code point in one number, or 0 when there is none. */
export function escapeAt(bytes: Buffer, at: number, length: number): number {
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
  let key = 0;
  while (end < length && end <= at + MAX_NAME_LENGTH && (bytes[end]! | 0x20) >= 0x61 && (bytes[end]! | 0x20) <= 0x7a)
    key = withLetter(key, bytes[end++]!);
  if (end < at + 3) return 0;
  const isClosed = end < length && bytes[end] === 0x3b;
  const code = (isClosed ? NAMED : WITHOUT_SEMICOLON).get(key);
  if (code === undefined) return 0;
  return (end - at + (isClosed ? 1 : 0)) * LENGTH + code;
}
