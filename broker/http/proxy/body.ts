/** Reads the body of a raw request: a short one as a whole, so that it can be judged and held; any other as a stream, unless it is signed. */
import type { IncomingMessage } from 'node:http';
import { MAX_READ_BYTES } from '../../calls/judge-body.ts';
import type { RawBody } from '../../calls/raw-request.ts';
import type { CallLease } from '../../egress/call-lease.ts';
import { type BodySigning, MAX_SIGNED_BYTES } from '../../egress/sign-request.ts';
import { decodeAwsChunked, isAwsChunked, MalformedChunks } from '../../proxy/aws-chunked.ts';
import { NO_ROOM } from '../../runtime/long-bodies.ts';
import { inTime } from '../request-pieces.ts';

/** A body that has to be signed and cannot be sent: it is longer than the limit, or there is not enough memory now. */
export class BodyNotTaken extends Error {
  readonly code: 'payload_too_large' | 'too_many_calls';

  constructor(code: BodyNotTaken['code'], message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Reads the body, and counts on `lease` the bytes that are in memory.
 *
 * Rejects when the sender disconnects or stalls before the kind of the body is known; with MalformedChunks when it is malformed; with BodyNotTaken.
 */
export async function takeRawBody(
  request: IncomingMessage,
  signing: BodySigning,
  lease: Pick<CallLease, 'count' | 'waitForRoom'>,
): Promise<RawBody> {
  const { 'content-length': said, 'transfer-encoding': coding } = request.headers;
  const sent = said === undefined ? undefined : Number(said);
  if (coding === undefined && (sent === undefined || sent === 0)) return { kind: 'none' };
  const isChunked = isAwsChunked(request.headers);
  const length = isChunked ? decodedLength(request) : sent;
  const trailer = [request.headers['x-amz-trailer']].flat().join(',');
  const pieces = isChunked ? decodeAwsChunked(inTime(request), { length, trailer }) : inTime(request);
  const read: Buffer[] = [];
  let size = 0;
  let most = MAX_READ_BYTES;
  /** Whether more bytes than are judged are read into memory, because they have to be signed. */
  const takesMore = async (bytes: number): Promise<boolean> => {
    if (signing === 'none' || most === MAX_SIGNED_BYTES) return false;
    if (bytes > MAX_SIGNED_BYTES || !(await lease.waitForRoom(bytes))) {
      if (signing === 'short') return false;
      throw bytes > MAX_SIGNED_BYTES ? tooLong() : new BodyNotTaken('too_many_calls', NO_ROOM);
    }
    most = MAX_SIGNED_BYTES;
    return true;
  };
  if (length !== undefined && length > most && !(await takesMore(length))) return streamOf([], pieces, length);
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) break;
    read.push(value);
    size += value.length;
    if (size <= most || (await takesMore(MAX_SIGNED_BYTES))) continue;
    if (signing === 'whole') throw tooLong();
    return streamOf(read, pieces, length);
  }
  if (size === 0) return { kind: 'none' };
  const bytes = Buffer.concat(read);
  if (most === MAX_READ_BYTES) lease.count(size);
  return size > MAX_READ_BYTES ? { kind: 'long', bytes } : { kind: 'whole', bytes };
}

const tooLong = (): BodyNotTaken =>
  new BodyNotTaken(
    'payload_too_large',
    'Requests to this platform are signed including their body, which can have at most 8 MiB. Nothing was sent.',
  );

function decodedLength({ headers: { 'x-amz-decoded-content-length': said } }: IncomingMessage): number | undefined {
  if (said === undefined) return undefined;
  if (typeof said !== 'string' || !/^\d{1,15}$/.test(said))
    throw new MalformedChunks('x-amz-decoded-content-length is not a valid length.');
  return Number(said);
}

function streamOf(read: readonly Buffer[], rest: AsyncIterable<Buffer>, length: number | undefined): RawBody {
  let isTaken = false;
  return {
    kind: 'stream',
    length,
    open: () => {
      if (isTaken) return undefined;
      isTaken = true;
      return both(read, rest);
    },
  };
}

async function* both(read: readonly Buffer[], rest: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* read;
  yield* rest;
}
