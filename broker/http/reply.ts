/** The answer of a handler, and how it is written: one `writeHead`, one `end`. */
import type { ServerResponse } from 'node:http';
import type { CallLease } from '../egress/call-lease.ts';
import { pacer } from '../runtime/pace.ts';
import { onDisconnect, resetConnection } from './disconnects.ts';
import type { Refusal } from './errors.ts';

export type Reply = {
  status: number;
  /** An array for a header that is sent several times: `Set-Cookie`. */
  headers?: Record<string, string | string[]>;
  /** Called once, when the reply was written or the client has disconnected. */
  done?: () => void;
  /** The lease of a call, held until the reply was written or the client has disconnected. When the lease is stopped, the rest is not sent. */
  lease?: CallLease;
  /** The encoded body; absent: no body. */
  body?: string | Buffer;
  /** The refusal in the body, for code that formats it differently, or counts it. */
  refusal?: Refusal;
  /** Media type; default `application/json; charset=utf-8`. */
  type?: string;
  /** Instead of a body: called after the head was sent, and ends the response. */
  stream?: (response: ServerResponse) => void;
  /** Instead of all other members: a library writes the whole answer. Headers that it does not set itself are set by `send`. */
  handOver?: (response: ServerResponse) => void;
};

export const JSON_TYPE = 'application/json; charset=utf-8';

/** A JSON answer without the envelope, for documents whose form another standard fixes. */
export function json(status: number, value: unknown, headers?: Record<string, string>): Reply {
  return { status, body: JSON.stringify(value), ...(headers && { headers }) };
}

/** Items of a list, and code units of a text, that are encoded without a pause: a millisecond of work. */
const ITEMS = 250;
const UNITS = 128 * 1024;

/** Encodes an object of long lists and texts like `json`, with pauses in which other requests are served. */
export async function longJson(
  status: number,
  value: Readonly<Record<string, string | readonly unknown[]>>,
): Promise<Reply> {
  const rest = pacer();
  const parts = [];
  for (const part of jsonParts(value)) {
    parts.push(Buffer.from(part));
    await rest();
  }
  return { status, body: Buffer.concat(parts) };
}

function* jsonParts(value: Readonly<Record<string, string | readonly unknown[]>>): Generator<string> {
  let before = '{';
  for (const [name, member] of Object.entries(value)) {
    yield `${before}${JSON.stringify(name)}:`;
    yield* typeof member === 'string' ? textParts(member) : listParts(member);
    before = ',';
  }
  yield before === '{' ? '{}' : '}';
}

function* listParts(list: readonly unknown[]): Generator<string> {
  yield '[';
  for (let at = 0; at < list.length; at += ITEMS)
    yield `${at === 0 ? '' : ','}${JSON.stringify(list.slice(at, at + ITEMS)).slice(1, -1)}`;
  yield ']';
}

function* textParts(text: string): Generator<string> {
  yield '"';
  let end = 0;
  for (let at = 0; at < text.length; at = end) {
    end = at + UNITS;
    // A surrogate pair is not split: each half alone would be encoded as an escape.
    if (text.charCodeAt(end - 1) >> 10 === 0xd800 >> 10) end++;
    yield JSON.stringify(text.slice(at, end)).slice(1, -1);
  }
  yield '"';
}

/** Writes a reply with its length and the headers of every answer. */
export function send(response: ServerResponse, reply: Reply, correlationId: string): void {
  const headers: Record<string, string | number | string[]> = {
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    'X-Correlation-Id': correlationId,
  };
  if (reply.handOver) {
    for (const [name, value] of Object.entries({ ...headers, ...reply.headers })) response.setHeader(name, value);
    reply.handOver(response);
    return;
  }
  if (reply.stream) headers['Content-Type'] = reply.type ?? JSON_TYPE;
  else if (reply.body !== undefined) {
    headers['Content-Type'] = reply.type ?? JSON_TYPE;
    headers['Content-Length'] = Buffer.byteLength(reply.body);
  } else if (reply.status !== 304 && reply.status !== 204) headers['Content-Length'] = 0;
  if (reply.headers) Object.assign(headers, reply.headers);
  if (reply.done) onDisconnect(response, reply.done);
  const { lease } = reply;
  if (lease) {
    lease.whenStopped(() => resetConnection(response));
    onDisconnect(response, () => lease.release());
  }
  response.writeHead(reply.status, headers);
  if (reply.stream && response.req.method !== 'HEAD') {
    response.flushHeaders();
    reply.stream(response);
  } else response.end(reply.body);
}

/** Formats a time (milliseconds since the epoch) for answers: RFC 3339, in UTC. */
export const instant = (moment: number | null): string | null =>
  moment === null ? null : new Date(moment).toISOString();
