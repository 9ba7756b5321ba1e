/** Decodes the content codings of responses (RFC 9110 §8.4), with a limit on the decompressed size. */
import { promisify } from 'node:util';
import zlib from 'node:zlib';

const brotli = promisify(zlib.brotliDecompress);
const gunzip = promisify(zlib.gunzip);
const inflateZlib = promisify(zlib.inflate);
const inflateRaw = promisify(zlib.inflateRaw);

export type Coding = 'gzip' | 'br' | 'deflate';

const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['br', 'br'],
  ['deflate', 'deflate'],
]);

/** Two codings are rare, more are an attack. */
const MAX_CODINGS = 2;

/** The codings of a `Content-Encoding` header, in the order in which they were applied; undefined when one is unknown. */
export function contentCodings(header: string | string[] | undefined): Coding[] | undefined {
  if (header === undefined) return [];
  const codings: Coding[] = [];
  for (const name of String(header).toLowerCase().split(',')) {
    const trimmed = name.trim();
    if (trimmed === '' || trimmed === 'identity') continue;
    const coding = CODINGS.get(trimmed);
    if (coding === undefined || codings.length === MAX_CODINGS) return undefined;
    codings.push(coding);
  }
  return codings;
}

/** Decodes a body. Each coding may produce at most `maxBytes`; corrupt or truncated data is `broken_answer`. Never rejects. */
export async function inflate(
  body: Buffer,
  codings: readonly Coding[],
  maxBytes: number,
): Promise<{ ok: true; body: Buffer } | { ok: false; code: 'too_large' | 'broken_answer' }> {
  let current = body;
  try {
    for (const coding of codings.toReversed()) {
      if (current.length > 0) current = await undo(coding, current, maxBytes);
    }
    return { ok: true, body: current };
  } catch (error) {
    const tooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE';
    return { ok: false, code: tooLarge ? 'too_large' : 'broken_answer' };
  }
}

function undo(coding: Coding, body: Buffer, maxBytes: number): Promise<Buffer> {
  const options = { maxOutputLength: Math.max(1, maxBytes) };
  if (coding === 'gzip') return gunzip(body, options);
  if (coding === 'br') return brotli(body, options);
  // Many servers send raw deflate data under this name; zlib data begins with method 8 (RFC 1950 §2.2).
  return ((body[0] ?? 0) & 0x0f) === 8 ? inflateZlib(body, options) : inflateRaw(body, options);
}
