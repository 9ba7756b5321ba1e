/** Reads and parses the body of a request; only after the caller's token was looked at, where a route asks for one. */
import type { Request, Response } from 'express';
import express, { type RequestHandler } from 'express';
import { Refusal } from './errors.ts';
import { type ParsedBody, parseBody } from './parsed-body.ts';
import type { Route } from './route.ts';

const KIB = 1024;
const MAX_BODY_BYTES = 1024 * KIB;

/** Reads the body of one request, at the first call; undefined where the route takes none. */
export type ReadBody = (request: Request, response: Response) => Promise<ParsedBody>;

/**
 * Makes the reader of a route's bodies. Inflates gzip, deflate and brotli; at most `maxBodyBytes` bytes when inflated.
 * A body that is too large is a `ParsedBody` like any other that cannot be parsed: who sent it is known by then, so it
 * can be recorded. Rejects with Refusal (400) where the body cannot be read at all.
 */
export function bodyReader(route: Route): ReadBody | undefined {
  if (!route.body) return undefined;
  const limit = route.maxBodyBytes ?? MAX_BODY_BYTES;
  const read: RequestHandler = express.raw({ type: 'application/json', limit });
  return async (request, response) => {
    const error = await new Promise<BodyError | undefined>((resolve) => {
      read(request, response, resolve as (error?: unknown) => void);
    });
    if (error === undefined) return parseBody(request, route);
    if (error.status === 413)
      return {
        ok: false,
        code: 'payload_too_large',
        error: `The body is too large: ${sizeInWords(limit)} at most.`,
      };
    if (error.status === undefined || error.status >= 500) throw error;
    throw new Refusal('invalid_request', describeBodyError(error));
  };
}

/** As raw-body and zlib throw it. */
type BodyError = Error & { type?: string; status?: number; code?: string };

const sizeInWords = (bytes: number): string =>
  bytes < MAX_BODY_BYTES ? `${bytes / KIB} KiB` : `${bytes / MAX_BODY_BYTES} MiB`;

function describeBodyError({ type, code }: BodyError): string {
  if (type === 'encoding.unsupported')
    return 'The Content-Encoding of the body is not supported: send it plain or gzip.';
  if (type === 'request.aborted' || type === 'request.size.invalid') return 'The body ended before its Content-Length.';
  if (code !== undefined && /^(Z_|ZSTD_|ERR_)/.test(code))
    return 'The body is not what its Content-Encoding says: send it plain or gzip.';
  return 'The request could not be read.';
}
