/** Reads and parses the body of a request; only after the caller's token was looked at, where a route asks for one. */
import express, { type Request, type RequestHandler, type Response } from 'express';
import type { Parsing } from '../runtime/long-bodies.ts';
import { Refusal } from './errors.ts';
import { type ParsedBody, parseBody } from './parsed-body.ts';
import type { Route } from './route.ts';

const KIB = 1024;
/** Of a body, unless its route says otherwise. */
export const MAX_BODY_BYTES = 1024 * KIB;

/** Reads the body of one request, at the first call; undefined where the route takes none. `parsing`: what parses a long one; undefined where it is known to be short. */
export type ReadBody = (request: Request, response: Response, parsing?: Parsing) => Promise<ParsedBody>;

/** Why a body could not be read, for a person. `isCut`: the connection ended before it did. */
export type Unread = { status: 400 | 413; detail: string; isCut: boolean };

/**
 * Makes the reader of a route's bodies. A body that is too large, or is not what its Content-Encoding says, is a `ParsedBody` like
 * any other that cannot be parsed: who sent it is known by then, so it can be recorded. Rejects with Refusal (400) where the
 * connection ended first: nobody waits for an answer, and the sender may have done nothing wrong.
 */
export function bodyReader(route: Route): ReadBody | undefined {
  if (!route.body) return undefined;
  const read = bytesReader('application/json', route.maxBodyBytes ?? MAX_BODY_BYTES);
  return async (request, response, parsing) => {
    const unread = await read(request, response);
    if (unread === undefined) return parseBody(request, route, parsing);
    if (unread.isCut) throw new Refusal('invalid_request', unread.detail);
    return { ok: false, error: unread.detail, ...(unread.status === 413 && { code: 'payload_too_large' }) };
  };
}

/**
 * Makes what reads bodies of a media type into `request.body`: a Buffer, or nothing where there is none. Inflates gzip,
 * deflate and brotli; at most `limit` bytes when inflated. Answers why it cannot be read, when the sender is the reason.
 */
export function bytesReader(
  type: string | (() => boolean),
  limit: number,
): (request: Request, response: Response) => Promise<Unread | undefined> {
  const read: RequestHandler = express.raw({ type, limit });
  return async (request, response) => {
    const error = await new Promise<BodyError | undefined>((resolve) => {
      read(request, response, resolve as (error?: unknown) => void);
    });
    if (error === undefined) return undefined;
    if (error.status === 413)
      return { status: 413, detail: `The body is too large: ${sizeInWords(limit)} at most.`, isCut: false };
    if (error.status === undefined || error.status >= 500) throw error;
    return { status: 400, detail: describeBodyError(error), isCut: wasCut(error) };
  };
}

/** As raw-body and zlib throw it. */
type BodyError = Error & { type?: string; status?: number; code?: string };

const sizeInWords = (bytes: number): string =>
  bytes < MAX_BODY_BYTES ? `${bytes / KIB} KiB` : `${bytes / MAX_BODY_BYTES} MiB`;

const wasCut = ({ type }: BodyError): boolean => type === 'request.aborted' || type === 'request.size.invalid';

function describeBodyError(error: BodyError): string {
  const { type, code } = error;
  if (type === 'encoding.unsupported')
    return 'The Content-Encoding of the body is not supported: send it plain or gzip.';
  if (wasCut(error)) return 'The body ended before its Content-Length.';
  if (code !== undefined && /^(Z_|ZSTD_|ERR_)/.test(code))
    return 'The body is not what its Content-Encoding says: send it plain or gzip.';
  return 'The request body could not be read.';
}
