/** A parsed request that is passed on as its client wrote it: what the decision uses, and what is sent. */
import { type JsonObject, type Method, UnreadBody } from '../policy/facts.ts';
import type { Parsing } from '../runtime/long-bodies.ts';
import type { Action } from '../wire/action.ts';
import { judgeInTurns } from './judge-body.ts';
import { typeAsRead } from './method-search.ts';

/** The body as it is sent. `whole`: read before the decision, so that the call can be held. */
export type RawBody =
  | { kind: 'none' }
  | { kind: 'whole'; bytes: Buffer }
  /** Too long to be judged and held, but buffered, because a signature covers it. */
  | { kind: 'long'; bytes: Buffer }
  /** `length`: as the client declared it. `open`: returns the pieces once; undefined when they were consumed before. */
  | { kind: 'stream'; length: number | undefined; open(): AsyncIterable<Uint8Array> | undefined };

/** Whether a body is too long to be judged and to be stored for a held call. */
export const isLong = (body: RawBody): body is Extract<RawBody, { kind: 'long' | 'stream' }> =>
  body.kind === 'long' || body.kind === 'stream';

/** The bytes of a buffered body; undefined when there are none, or the body is streamed. */
export const bytesOf = (body: RawBody): Buffer | undefined =>
  body.kind === 'whole' || body.kind === 'long' ? body.bytes : undefined;

export type RawRequest = {
  /** The method as sent; `HEAD` is judged as a GET. */
  method: Method | 'HEAD';
  /** `content-type` and `content-encoding`, as sent. */
  bodyHeaders: Readonly<Record<string, string>>;
  body: RawBody;
  /** The body as the decision sees it: its members, why it was not parsed, or undefined when there is none. */
  judged: JsonObject | UnreadBody | undefined;
  /** The key by which equal requests join a held call; undefined when the request joins none. */
  join?: HeldJoin | undefined;
};

/**
 * `key`: equal for equal requests. `separate`: distinguishes equal requests that are open at the same time, or empty. `openMs`: how long
 * this request stays open.
 */
export type HeldJoin = { key: string; separate: string; openMs: number };

/** The scope of a raw request is inferred from its endpoint. */
const NO_SCOPE = '';

/** Builds the action of a raw request, whose scope is not known yet. */
export function rawAction(
  raw: Pick<RawRequest, 'method' | 'judged'>,
  {
    platform,
    endpoint,
    headers,
    connectionId,
    reason,
  }: {
    platform: string;
    endpoint: string;
    headers: Readonly<Record<string, string>>;
    connectionId: string;
    reason?: string | undefined;
  },
): Action {
  const data = raw.judged !== undefined && isMembers(raw.judged) ? raw.judged : undefined;
  return {
    platform,
    endpoint,
    method: raw.method === 'HEAD' ? 'GET' : raw.method,
    scope: NO_SCOPE,
    headers: { ...headers },
    connection_id: connectionId,
    ...(data && { data }),
    ...(reason !== undefined && { reason }),
  };
}

const isMembers = (judged: JsonObject | UnreadBody): judged is JsonObject => !(judged instanceof UnreadBody);

/** Rebuilds a raw request from its sealed form: its bytes are sent as approved, and its body is judged again. */
export async function heldRaw(
  { data }: Action,
  held: { method: string; bodyHeaders: Readonly<Record<string, string>>; bytes: Buffer | undefined },
  parsing: Parsing,
): Promise<RawRequest> {
  const { method, bodyHeaders, bytes } = held;
  return {
    method: method as RawRequest['method'],
    bodyHeaders,
    body: bytes === undefined ? { kind: 'none' } : { kind: 'whole', bytes },
    judged:
      data === undefined ? bytes && (await judgedAgain(method, bodyHeaders, bytes, parsing)) : (data as JsonObject),
  };
}

/** Judges a body that is not an object. A refused body was never held. */
async function judgedAgain(
  method: string,
  bodyHeaders: Readonly<Record<string, string>>,
  bytes: Buffer,
  parsing: Parsing,
): Promise<JsonObject | UnreadBody | undefined> {
  const asRead = typeAsRead(method, bodyHeaders['content-type']);
  const found = await judgeInTurns(bodyHeaders, bytes, parsing, { asRead, isStored: true });
  // Its members were not read when it was held, so they are not read now.
  return found.ok && found.judged instanceof UnreadBody ? found.judged : UNSHOWN;
}

const UNSHOWN = new UnreadBody('a body of this media type is not read');
