/** Masks streamed answers: events and JSON lines as they arrive, anything else as a whole. */
import { createHash } from 'node:crypto';
import { inUtf8, type ReadAnswer, type Received } from '../egress/answers/answer.ts';
import { maskedHeaders, maskingOf } from '../egress/answers/mask-answer.ts';
import { PieceMasker, piecesOf } from '../egress/answers/mask-lines.ts';
import { StreamBroken, type Transferred } from '../egress/streamed-body.ts';
import type { Mask } from '../policy/masks/mask.ts';
import { essenceOf, isUtf8Name } from '../wire/media-type.ts';

const CHARSET = /charset\s*=\s*"?([^\s";]*)/gi;
/** Longest answer that is masked as a whole; a longer one is withheld. */
const MAX_BYTES = 10 * 1024 * 1024;

type Opened = Received['headers'];
type UnmaskedAnswer = { status: number; headers: Opened; body: AsyncIterable<Buffer> };

/**
 * A masked answer. `received`: the bytes passed on so far. `hasAny`: whether anything is masked; for events and lines, that something may
 * be.
 */
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
 * @param read reads and masks a complete answer
 * @returns undefined when it cannot be determined what to mask
 * @throws StreamBroken when the answer breaks off
 */
export async function maskStream(
  { status, headers, body }: UnmaskedAnswer,
  mask: Mask,
  { read, count }: { read: (whole: Received) => Promise<ReadAnswer<string | Buffer>>; count: (bytes: number) => void },
): Promise<MaskedStream | undefined> {
  const type = String(headers['content-type'] ?? '');
  const masking = maskingOf(mask);
  const pieces = piecesOf(essenceOf(type));
  if (pieces !== undefined && status !== 206) {
    // Events and JSON lines are UTF-8. Any parameter that names another charset counts, wherever it stands, because some reader may honour
    // it.
    if ([...type.matchAll(CHARSET)].some(([, charset = '']) => !isUtf8Name(charset))) return undefined;
    const masker = new PieceMasker(pieces, masking);
    return taken(maskedHeaders(headers, masking, true), inPieces(body, masker), {
      masked: () => masker.count,
      hasAny: true,
    });
  }
  const whole = await readWhole(counting(body, count), MAX_BYTES);
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

/** Counts buffered bytes against the lease. */
async function* counting(body: AsyncIterable<Buffer>, count: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const chunk of body) {
    count(chunk.length);
    yield chunk;
  }
}

/** Reads a whole body; undefined when it is longer than `most`. Throws `StreamBroken` when it breaks off. */
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
    // A NUL means UTF-16 that was declared as UTF-8.
    const text = come.includes('\0') ? undefined : masker.push(come);
    if (text === undefined) throw new StreamBroken('not_masked');
    if (text !== '') yield Buffer.from(text);
  }
  const rest = `${masker.push(decoder.decode()) ?? ''}${masker.end()}`;
  if (rest !== '') yield Buffer.from(rest);
  return undefined;
}

/** Counts and hashes the masked bytes, not the received ones: the hash of a short answer would reveal what was masked. */
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
