// biome-ignore-all lint/style/noNonNullAssertion: typed arrays and buffers, read within their bounds; a check per byte would cost on every answer.
/**
 * Canonical views of bytes, in which an escaped credential appears unescaped: escapes of JSON, URLs and HTML are decoded, white space and
 * NULs removed. Each runs in place and in one pass, because every response is searched.
 */
import { AMPERSAND, BACKSLASH, CODE_POINT, escapeAt, LENGTH_BITS, PERCENT } from './escapes.ts';

/** Bytes that are being canonicalised; each step changes them in place. */
export type View = {
  bytes: Buffer;
  /** How many of `bytes` are in use. */
  length: number;
  /** Ascending positions of the characters that may begin an escape. Without any, nothing needs decoding. */
  markers: number[];
  /** For each byte, its start and end in the original. */
  origin: { from: Uint32Array; to: Uint32Array } | undefined;
};

/** Class of each byte value: `SKIP`, `KEEP`, or `MARKER` (kept, and may begin an escape). */
export type Classes = Readonly<Uint8Array>;
const [SKIP, KEEP, MARKER] = [0, 1, 3];

/** NULs are removed, so that ASCII in UTF-16 of either byte order reads like ASCII. */
export const KEEP_WHITE_SPACE: Classes = classesWithout([0]);
export const SKIP_WHITE_SPACE: Classes = classesWithout([0, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x20]);

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

/**
 * Creates a view of the bytes. `mapped`: with the origin of each byte, which costs eight bytes each. `inSource`: receives the positions of the
 * markers in `source`.
 */
export function viewOf(source: Uint8Array, classes: Classes, mapped = false, inSource?: number[]): View {
  const bytes = Buffer.allocUnsafe(source.length);
  const origin = mapped ? { from: new Uint32Array(source.length), to: new Uint32Array(source.length) } : undefined;
  const markers: number[] = [];
  let length = 0;
  for (let i = 0; i < source.length; i++) {
    const byte = source[i]!;
    const kind = classes[byte]!;
    bytes[length] = byte;
    if (origin !== undefined) {
      origin.from[length] = i;
      origin.to[length] = i + 1;
    }
    if (kind === MARKER) {
      markers.push(length);
      inSource?.push(i);
    }
    length += kind & KEEP;
  }
  return { bytes, length, markers, origin };
}

/** A view of a copy of the bytes, with white space, when the positions of its markers are known. */
export function viewInPlace(source: Buffer, markers: number[]): View {
  if (source.includes(0)) return viewOf(source, KEEP_WHITE_SPACE);
  return { bytes: Buffer.from(source), length: source.length, markers, origin: undefined };
}

/** Decodes one layer of escapes, in place. Returns false when there was none. The bytes between escapes are moved as a whole. */
export function undoEscapes(view: View, classes: Classes): boolean {
  const { bytes, length, origin } = view;
  const markers: number[] = [];
  let read = 0;
  let out = 0;
  for (const at of view.markers) {
    // It may be a part of the escape before it, or no marker of these classes.
    if (at < read || classes[bytes[at]!] !== MARKER) continue;
    const found = escapeAt(bytes, at, length);
    if (found === 0) {
      markers.push(at - read + out);
      continue;
    }
    if (read < at) out = move(view, read, at, out);
    read = at + (found >>> LENGTH_BITS);
    const code = found & CODE_POINT;
    if (code < 0x80 || bytes[at] === PERCENT) {
      const kind = classes[code]!;
      bytes[out] = code;
      if (origin !== undefined) setOrigin(origin, out, at, read);
      if (kind === MARKER) markers.push(out);
      out += kind & KEEP;
    } else {
      const size = writeUtf8(bytes, out, code);
      if (origin !== undefined) for (let i = out; i < out + size; i++) setOrigin(origin, i, at, read);
      out += size;
    }
  }
  view.markers = markers;
  if (read === 0) return false;
  view.length = move(view, read, length, out);
  return true;
}

/** For fewer bytes, a loop is faster than a call of `copyWithin`. */
const LOOP_BELOW = 48;

/** Moves the bytes from `from` up to `to` to `out`. Returns the position after them. */
function move({ bytes, origin }: View, from: number, to: number, out: number): number {
  if (from === out) return out + to - from;
  if (to - from < LOOP_BELOW) for (let i = from, at = out; i < to; i++, at++) bytes[at] = bytes[i]!;
  else bytes.copyWithin(out, from, to);
  if (origin !== undefined) {
    origin.from.copyWithin(out, from, to);
    origin.to.copyWithin(out, from, to);
  }
  return out + to - from;
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
