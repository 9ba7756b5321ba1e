/** Takes the body of a raw request: a short one as a whole, so that it can be judged and held, any other in pieces. */
import type { IncomingMessage } from 'node:http';
import { MOST_READ_BYTES } from '../calls/judge-body.ts';
import type { RawBody } from '../calls/raw-request.ts';
import { decodeAwsChunked, isAwsChunked, MalformedChunks } from '../proxy/aws-chunked.ts';
import { inTime } from './request-pieces.ts';

/** Rejects when its sender leaves or stalls before it can be said which of the two it is; with MalformedChunks where it is broken. */
export async function takeRawBody(request: IncomingMessage): Promise<RawBody> {
  const { 'content-length': said, 'transfer-encoding': coding } = request.headers;
  const sent = said === undefined ? undefined : Number(said);
  if (coding === undefined && (sent === undefined || sent === 0)) return { kind: 'none' };
  const isChunked = isAwsChunked(request.headers['content-encoding']);
  const length = isChunked ? decodedLength(request) : sent;
  const pieces = isChunked ? decodeAwsChunked(inTime(request), length) : inTime(request);
  if (length !== undefined && length > MOST_READ_BYTES) return streamOf([], pieces, length);
  const read: Buffer[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) return size === 0 ? { kind: 'none' } : { kind: 'whole', bytes: Buffer.concat(read) };
    read.push(value);
    size += value.length;
    if (size > MOST_READ_BYTES) return streamOf(read, pieces, length);
  }
}

function decodedLength({ headers: { 'x-amz-decoded-content-length': said } }: IncomingMessage): number | undefined {
  if (said === undefined) return undefined;
  if (typeof said !== 'string' || !/^\d{1,15}$/.test(said))
    throw new MalformedChunks('x-amz-decoded-content-length is no length.');
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
