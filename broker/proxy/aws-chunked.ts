/**
 * Decodes bodies with the `aws-chunked` encoding of AWS SDK uploads: chunks with their lengths, followed by a checksum (Amazon S3,
 * "Signature calculations for trailing headers and chunked uploads"). Chunk signatures are ignored, because they are made with the client's
 * placeholder key.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { CHECKSUM_NAMES, checksum } from './checksums.ts';

/** `message`: what is wrong, as a sentence for a 400. */
export class MalformedChunks extends Error {}

const MAX_LINE_BYTES = 4 * 1024;
const MAX_TRAILERS = 8;
/** S3 accepts no chunk below 8 KiB but the last. Very small chunks would cost one iteration per byte. */
const MIN_CHUNKS = 1_000;
const MIN_MEAN_BYTES = 256;
const CHUNK = /^([0-9a-f]{1,8})(?:;[\x21-\x7e]*)?$/i;
const TRAILER = /^([a-z0-9-]{1,60}):[ \t]*([\x21-\x7e]*)$/i;
const CODING = /^\s*aws-chunked\s*$/i;

/** Values that replace the body's hash: `STREAMING-AWS4-HMAC-SHA256-PAYLOAD`, `STREAMING-UNSIGNED-PAYLOAD-TRAILER` and others. */
const STREAMING = /^\s*STREAMING-/i;

/**
 * Whether the request's headers declare the encoding: `Content-Encoding`, or only `x-amz-content-sha256`, as minio-go (restic, MinIO's own
 * client) does.
 */
export const isAwsChunked = (headers: IncomingHttpHeaders): boolean =>
  (headers['content-encoding'] ?? '').split(',').some((one) => CODING.test(one)) ||
  [headers['x-amz-content-sha256'] ?? []].flat().some((one) => STREAMING.test(one));

/** The `Content-Encoding` without `aws-chunked`; undefined when nothing is left. */
export function withoutAwsChunked(coding: string): string | undefined {
  const left = coding.split(',').filter((one) => !CODING.test(one));
  return left.length === 0 ? undefined : left.join(',').trim();
}

/**
 * Decodes the chunks. The last bytes are yielded only after length and checksum were verified, so that an invalid body is never complete:
 * the iterator throws MalformedChunks then. The call itself throws it when `trailer` names an unsupported checksum.
 *
 * @param length expected decoded length (`x-amz-decoded-content-length`); not checked when undefined
 * @param trailer names of the trailers (`x-amz-trailer`), separated by commas
 */
export function decodeAwsChunked(
  source: AsyncIterable<Buffer>,
  { length, trailer = '' }: { length?: number | undefined; trailer?: string | undefined } = {},
): AsyncGenerator<Buffer> {
  return closing(new ChunkReader(source), new Announced(trailer), length);
}

/** Closes the source when the reader stops early, so that the rest of it is drained. */
async function* closing(reader: ChunkReader, announced: Announced, length?: number): AsyncGenerator<Buffer> {
  try {
    yield* decoded(reader, announced, length);
  } finally {
    await reader.close();
  }
}

async function* decoded(reader: ChunkReader, announced: Announced, length?: number): AsyncGenerator<Buffer> {
  let size = 0;
  let held: Buffer | undefined;
  for (let chunks = 0; ; chunks++) {
    if (chunks > MIN_CHUNKS + size / MIN_MEAN_BYTES)
      throw new MalformedChunks(`The chunks of the body are too small: send ${MIN_MEAN_BYTES} bytes and more in each.`);
    const line = await reader.line();
    const [, hex] = CHUNK.exec(line) ?? [];
    if (hex === undefined) throw new MalformedChunks('A chunk of the body has no length at its beginning.');
    let left = Number.parseInt(hex, 16);
    if (left === 0) break;
    for (; left > 0; ) {
      const piece = await reader.most(left);
      left -= piece.length;
      size += piece.length;
      announced.add(piece);
      if (held !== undefined) yield held;
      held = piece;
    }
    if ((await reader.line()) !== '') throw new MalformedChunks('A chunk of the body is longer than it says.');
  }
  for (let count = 0; ; count++) {
    const line = await reader.line({ mayEnd: true });
    if (line === '') break;
    const [, name = '', value = ''] = TRAILER.exec(line.trimEnd()) ?? [];
    if (name === '' || count >= MAX_TRAILERS)
      throw new MalformedChunks('The data after the chunks of the body is not a valid trailer.');
    announced.compare(name.toLowerCase(), value);
  }
  announced.end();
  if (length !== undefined && size !== length)
    throw new MalformedChunks('The length of the body differs from x-amz-decoded-content-length.');
  if (held !== undefined) yield held;
}

const CHECKSUM = 'x-amz-checksum-';

/** The announced checksum, which must follow the chunks, once. */
class Announced {
  readonly #name: string | undefined;
  readonly #sum: ReturnType<typeof checksum>;
  #isCompared = false;

  /** Throws MalformedChunks when the announced checksum is unsupported, or several are announced. */
  constructor(trailer: string) {
    const names = trailer.split(',').map((one) => one.trim().toLowerCase());
    const [name, ...others] = names.filter((one) => one.startsWith(CHECKSUM));
    if (others.length > 0) throw new MalformedChunks('x-amz-trailer names more than one checksum.');
    this.#name = name;
    this.#sum = name === undefined ? undefined : checksum(name.slice(CHECKSUM.length));
    if (name !== undefined && this.#sum === undefined)
      throw new MalformedChunks(
        `The checksum that x-amz-trailer names is not supported: use one of ${CHECKSUM_NAMES.join(', ')}.`,
      );
  }

  add(piece: Buffer): void {
    this.#sum?.add(piece);
  }

  /** Throws MalformedChunks when a trailer of this name differs from the computed checksum. */
  compare(name: string, value: string): void {
    if (!name.startsWith(CHECKSUM)) return;
    if (this.#sum === undefined || name !== this.#name || this.#isCompared)
      throw new MalformedChunks('The body ends with a checksum that x-amz-trailer does not name.');
    this.#isCompared = true;
    if (this.#sum.digest().toString('base64') !== value)
      throw new MalformedChunks(
        `The checksum (${name.slice(CHECKSUM.length)}) at the end of the body does not match the body.`,
      );
  }

  /** Called after all trailers; throws MalformedChunks when the announced checksum is missing. */
  end(): void {
    if (this.#sum !== undefined && !this.#isCompared)
      throw new MalformedChunks('The body ends without the checksum that x-amz-trailer names.');
  }
}

class ChunkReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Reads a line without its line break. `mayEnd`: returns an empty line at the end of the source. */
  async line({ mayEnd = false } = {}): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf('\r\n');
      if (end >= 0 && end <= MAX_LINE_BYTES) {
        const line = this.#rest.subarray(0, end).toString('latin1');
        this.#rest = this.#rest.subarray(end + 2);
        return line;
      }
      if (this.#rest.length > MAX_LINE_BYTES)
        throw new MalformedChunks('A line between the chunks of the body is too long.');
      if (await this.#more()) continue;
      if (mayEnd && this.#rest.length === 0) return '';
      throw new MalformedChunks('The body ends in the middle of a chunk.');
    }
  }

  /** Reads at least one byte, and at most `count`. */
  async most(count: number): Promise<Buffer> {
    while (this.#rest.length === 0)
      if (!(await this.#more())) throw new MalformedChunks('The body ends in the middle of a chunk.');
    const piece = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (done) return false;
    this.#rest = this.#rest.length === 0 ? value : Buffer.concat([this.#rest, value]);
    return true;
  }
}
