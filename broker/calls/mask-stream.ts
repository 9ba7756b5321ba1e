/** Streamed answers that rules mask: events and lines of JSON as they come, anything else as a whole. */
import { createHash } from 'node:crypto';
import { inUtf8, type ReadAnswer, type Received } from '../egress/answer.ts';
import { maskedHeaders, maskingOf } from '../egress/mask-answer.ts';
import { PieceMasker, piecesOf } from '../egress/mask-lines.ts';
import { StreamBroken, type Transferred } from '../egress/streamed-body.ts';
import type { Mask } from '../policy/mask.ts';
import { essenceOf, isUtf8Name } from '../wire/media-type.ts';

const CHARSET = /charset\s*=\s*"?([^\s";]*)/gi;
/** An answer that is longer is withheld, unless it comes in events or lines. */
const MOST_BYTES = 10 * 1024 * 1024;

type Opened = Received['headers'];
type Coming = { status: number; headers: Opened; body: AsyncIterable<Buffer> };

/** What may be passed on. `received`: what was taken of it until now. `hasAny`: whether anything is masked; of one that is masked as it comes, that it may be. */
export type MaskedStream = {
  headers: Opened;
  hasAny: boolean;
  body: AsyncIterableIterator<Buffer>;
  received(): Transferred;
  masked(): number;
};

/**
 * Masks an answer.
 *
 * @param read reads one that came as a whole, and masks it
 * @returns undefined: it cannot be told what is to be masked in it. What breaks off throws `StreamBroken`
 */
export async function maskStream(
  { status, headers, body }: Coming,
  mask: Mask,
  { read, count }: { read: (whole: Received) => Promise<ReadAnswer<string | Buffer>>; count: (bytes: number) => void },
): Promise<MaskedStream | undefined> {
  const type = String(headers['content-type'] ?? '');
  const masking = maskingOf(mask);
  const pieces = piecesOf(essenceOf(type));
  if (pieces !== undefined && status !== 206) {
    // Events and lines of JSON are UTF-8. Whatever names another charset counts, wherever it stands: some reader may take it for one.
    if ([...type.matchAll(CHARSET)].some(([, charset = '']) => !isUtf8Name(charset))) return undefined;
    const masker = new PieceMasker(pieces, masking);
    return taken(maskedHeaders(headers, masking, true), inPieces(body, masker), {
      masked: () => masker.count,
      hasAny: true,
    });
  }
  const whole = await readWhole(counting(body, count), MOST_BYTES);
  if (whole === undefined) return undefined;
  if (whole.length === 0)
    return taken(maskedHeaders(headers, masking, false), once(whole), { masked: () => 0, hasAny: false });
  const answer = await read({ status, headers, body: whole });
  if (answer.kind === 'blocked') return undefined;
  const { data, encoding, isText, masked = 0 } = answer;
  const isString = isText || encoding !== undefined;
  const bytes = Buffer.from(isString ? (JSON.parse(data.toString()) as string) : data.toString(), encoding ?? 'utf8');
  const described = {
    ...maskedHeaders(headers, masking, masked > 0),
    'content-length': String(bytes.length),
    ...(type !== '' && { 'content-type': inUtf8(type) }),
  };
  return taken(described, once(bytes), { masked: () => masked, hasAny: masked > 0 });
}

/** Counts what is kept before it can be masked. */
async function* counting(body: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    count(chunk.length);
    yield chunk;
  }
}

/** All of a body; undefined where it is longer. What breaks off throws `StreamBroken`. */
export async function readWhole(body: AsyncIterable<Buffer>, most: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function* once(bytes: Buffer): AsyncGenerator<Buffer, undefined> {
  if (bytes.length > 0) yield bytes;
  return undefined;
}

async function* inPieces(body: AsyncIterable<Buffer>, masker: PieceMasker): AsyncGenerator<Buffer, undefined> {
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    const come = decoder.decode(chunk, { stream: true });
    // UTF-16 that is said to be none.
    const text = come.includes('\0') ? undefined : masker.push(come);
    if (text === undefined) throw new StreamBroken('not_masked');
    if (text !== '') yield Buffer.from(text);
  }
  const rest = `${masker.push(decoder.decode()) ?? ''}${masker.end()}`;
  if (rest !== '') yield Buffer.from(rest);
  return undefined;
}

/** Counts and hashes what goes out, and not what came: the hash of a short answer would tell what was masked. */
function taken(
  headers: Opened,
  body: AsyncGenerator<Buffer, undefined>,
  more: Pick<MaskedStream, 'masked' | 'hasAny'>,
): MaskedStream {
  const hash = createHash('sha256');
  let bytes = 0;
  async function* counted(): AsyncGenerator<Buffer, undefined> {
    for await (const piece of body) {
      bytes += piece.length;
      hash.update(piece);
      yield piece;
    }
    return undefined;
  }
  return { headers, body: counted(), received: () => ({ bytes, sha256: hash.copy().digest('hex') }), ...more };
}
