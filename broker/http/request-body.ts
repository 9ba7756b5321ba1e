/**
 * Reads the body of a request and parses its JSON, before it is validated; where a route requires authentication, after the caller's token was
 * checked.
 */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { parseStrictJson, parseStrictJsonInParts, type StrictJson } from '../../json/strict.ts';
import { askedPlatform } from '../policy/asked-platform.ts';
import type { JsonObject } from '../policy/facts.ts';
import { LONG_BODY, NO_ROOM, type Parsing } from '../runtime/long-bodies.ts';
import { charsetsOf, essenceOf, isUtf8Name } from '../wire/media-type.ts';
import { Refusal } from './errors.ts';
import { OWNERS, type Route } from './route.ts';

const KIB = 1024;
/** Default size limit of a body. */
export const MAX_BODY_BYTES = 1024 * KIB;

/** Whether the body is long by its Content-Length, or may be, because that is missing or the body is compressed. */
export const mayBeLong = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined ||
  Number(headers['content-length'] ?? 0) > (headers['content-encoding'] === undefined ? LONG_BODY : 0);

/** Returns how many bytes a body may have, decompressed, by its headers; `limit`: of the reader. */
export function mostBodyBytes(headers: IncomingHttpHeaders, limit: number): number {
  const { 'content-length': length, 'content-encoding': coding, 'transfer-encoding': framing } = headers;
  return coding === undefined && framing === undefined ? Math.min(Number(length ?? 0), limit) : limit;
}

/** Reads the body of one request. `parsing`: parses long bodies; undefined where the body is known to be short. */
export type ReadBody = (request: Request, response: Response, parsing?: Parsing) => Promise<ParsedBody>;

/** Why a body could not be read, for a person. `isCut`: the connection closed before the end of the body. */
export type Unread = { status: 400 | 413; detail: string; isCut: boolean };

/**
 * Creates the reader of a route's bodies; undefined for a route without one. A body that is too large, or does not match its Content-Encoding, is
 * returned as a `ParsedBody` that cannot be parsed: the sender is authenticated by then, so it can be recorded. Rejects with Refusal (400) when the
 * connection closed first: no client waits for the answer, and the sender may have done nothing wrong.
 */
export function bodyReader(route: Route): ReadBody | undefined {
  if (!route.body) return undefined;
  // An optional body that is sent in chunks can be empty, which shows only after reading; proxies send such a request without a Content-Type.
  const type = route.bodyOptional ? ({ headers }: IncomingMessage) => isUntyped(headers) || isJson(headers) : JSON_TYPE;
  const read = bytesReader(type, route.maxBodyBytes ?? MAX_BODY_BYTES);
  return async (request, response, parsing) => {
    const unread = await read(request, response);
    if (unread === undefined) return parseBody(request, route, parsing);
    if (unread.isCut) throw new Refusal('invalid_request', unread.detail);
    return { ok: false, error: unread.detail, ...(unread.status === 413 && { code: 'payload_too_large' }) };
  };
}

/**
 * Creates the reader of bodies with a media type into `request.body`: a Buffer, or undefined without a body. Decompresses gzip, deflate and brotli,
 * up to `limit` bytes. Returns why a body cannot be read, when the sender is the cause.
 */
export function bytesReader(
  type: string | ((request: IncomingMessage) => boolean),
  limit: number,
): (request: Request, response: Response) => Promise<Unread | undefined> {
  const read: RequestHandler = express.raw({ type, limit });
  return async (request, response) => {
    const error = await new Promise<BodyError | undefined>((resolve) => {
      read(request, response, resolve as (error?: unknown) => void);
    });
    if (error === undefined) return undefined;
    if (error.status === 413)
      return { status: 413, detail: `The body is too large: ${formatSize(limit)} at most.`, isCut: false };
    if (error.status === undefined || error.status >= 500) throw error;
    return { status: 400, detail: describeBodyError(error), isCut: wasCut(error) };
  };
}

const JSON_TYPE = 'application/json';

const isUntyped = (headers: IncomingHttpHeaders): boolean => headers['content-type'] === undefined;

const isJson = ({ 'content-type': type }: IncomingHttpHeaders): boolean => essenceOf(type) === JSON_TYPE;

/** Errors thrown by raw-body and zlib. */
type BodyError = Error & { type?: string; status?: number; code?: string };

const formatSize = (bytes: number): string =>
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

/** `bytes`: of memory that the value takes, and that is not counted yet. `code`: the error code, when it is not `invalid_request`. */
export type ParsedBody =
  | { ok: true; value: unknown; platform: string; bytes: number }
  | { ok: false; error: string; code?: 'payload_too_large' | 'too_many_calls' };

/** Limit of members of all objects in an owner's body: a hundred thousand names would block other requests, and no set of rules has as many. */
const OWNERS_MEMBERS = 20_000;
/** Limit of their values, which take up to 13 MB then. */
const OWNERS_VALUES = 200_000;

/**
 * Reads the platform before the schema is checked: its facts are loaded with the one query of authentication. `parsing`: parses long bodies;
 * undefined where the body is known to be short.
 */
function parseBody(request: Request, route: Route, parsing?: Parsing): ParsedBody | Promise<ParsedBody> {
  const { body, headers } = request;
  // Not kept for as long as the call takes.
  request.body = undefined;
  const isBuffer = Buffer.isBuffer(body);
  if (route.bodyOptional && (isEmpty(headers) || (isBuffer && body.length === 0)))
    return { ok: true, value: {}, platform: '', bytes: 0 };
  if (!isBuffer || body.length === 0 || isUntyped(headers))
    return { ok: false, error: 'Send a JSON body with the header "Content-Type: application/json".' };
  const limits = {
    nulAllowedIn: route.nulAllowedIn ?? [],
    ...(OWNERS.has(route.auth) && { maxMembers: OWNERS_MEMBERS, maxValues: OWNERS_VALUES }),
  };
  const textOf = () => jsonText(body, headers['content-type']);
  if (parsing === undefined || body.length <= LONG_BODY) {
    const text = textOf();
    return text === undefined ? NOT_UTF8 : bodyOf(parseStrictJson(text, limits), route);
  }
  return parsing.inTurn(async (rest, takeRoom) => {
    const text = textOf();
    if (text === undefined) return NOT_UTF8;
    const parsed = await parseStrictJsonInParts(text, limits, rest, takeRoom);
    return parsed ? { ...bodyOf(parsed, route), bytes: 0 } : { ok: false, error: NO_ROOM, code: 'too_many_calls' };
  });
}

const NOT_UTF8: ParsedBody = { ok: false, error: 'The body must be in UTF-8.' };

function bodyOf(parsed: StrictJson, route: Route): ParsedBody {
  if (!parsed.ok) return { ok: false, error: route.secretBody ? 'The body is not well-formed JSON.' : parsed.error };
  const { value, bytes } = parsed;
  return { ok: true, value, platform: platformOf(value, route), bytes };
}

/** Returns the platform that a body of this route names; empty when it names none. */
export function platformOf(value: unknown, route: Route): string {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  const { platformIn = ({ platform }: JsonObject) => platform } = route;
  return isObject ? askedPlatform(platformIn(value as JsonObject)) : '';
}

/**
 * Returns the text of a JSON body, byte for byte; undefined when it is not UTF-8 (RFC 8259 section 8.1), or declares another character set: decoding
 * with replacement characters would change the body.
 */
export function jsonText(body: Buffer, contentType = ''): string | undefined {
  const [charset] = charsetsOf(contentType);
  if ((charset !== undefined && !isUtf8Name(charset)) || !isUtf8(body)) return undefined;
  return body.toString('utf8');
}

/** Whether no body was sent (RFC 9112 section 6.3). */
const isEmpty = (headers: Request['headers']): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
