/** A request that is passed on as its client wrote it, as its door has read it: what is decided by, and what is sent. */
import { type JsonObject, type Method, UnreadBody } from '../policy/facts.ts';
import type { Parsing } from '../runtime/long-bodies.ts';
import type { Action } from '../wire/action.ts';
import { judgeInTurns } from './judge-body.ts';
import { typeAsRead } from './method-search.ts';

/** The body as it is sent. `whole`: read before it is decided on, so that it can be held. */
export type RawBody =
  | { kind: 'none' }
  | { kind: 'whole'; bytes: Buffer }
  /** Longer than is judged and held, and in memory as a whole, because a signature covers it. */
  | { kind: 'long'; bytes: Buffer }
  /** `length`: where the client said it. `open`: its pieces, once; undefined when they were taken before. */
  | { kind: 'stream'; length: number | undefined; open(): AsyncIterable<Uint8Array> | undefined };

/** Whether a body is too long to be judged and to be kept for a person. */
export const isLong = (body: RawBody): body is Extract<RawBody, { kind: 'long' | 'stream' }> =>
  body.kind === 'long' || body.kind === 'stream';

/** The bytes of a body that is in memory; undefined: there are none, or they are still on their way. */
export const bytesOf = (body: RawBody): Buffer | undefined =>
  body.kind === 'whole' || body.kind === 'long' ? body.bytes : undefined;

export type RawRequest = {
  /** As it is sent: `HEAD` is judged as a GET. */
  method: Method | 'HEAD';
  /** `content-type` and `content-encoding`, as they are sent. */
  bodyHeaders: Readonly<Record<string, string>>;
  body: RawBody;
  /** What is known of the body: its members, why it was not read, or that there is none. */
  judged: JsonObject | UnreadBody | undefined;
  /** Finds the held call that the same request joins; undefined: it joins none. */
  join?: HeldJoin | undefined;
};

/**
 * `key`: of the same request. `separate`: what tells apart requests that are open at the same time, or the empty string. `openMs`: how
 * long this one stays open.
 */
export type HeldJoin = { key: string; separate: string; openMs: number };

/** Of a raw request the scope is found by its endpoint. */
const NO_SCOPE = '';

/** The request as an action, whose scope is not known yet. */
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

/** A held one, as it was sealed: its bytes are sent as they were approved, and what is known of them is read again. */
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

/** Of a body that is no object. What the door refuses of one was refused there, and was not held. */
async function judgedAgain(
  method: string,
  bodyHeaders: Readonly<Record<string, string>>,
  bytes: Buffer,
  parsing: Parsing,
): Promise<JsonObject | UnreadBody | undefined> {
  const asRead = typeAsRead(method, bodyHeaders['content-type']);
  const found = await judgeInTurns(bodyHeaders, bytes, parsing, { asRead, isStored: true });
  // Members were not read of it when it was held, so none are read now.
  return found.ok && found.judged instanceof UnreadBody ? found.judged : UNSHOWN;
}

const UNSHOWN = new UnreadBody('a body of this media type is not read');
