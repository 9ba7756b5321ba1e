/** Reads the JSON-RPC messages of a request to `/mcp` once, for the broker's own checks and for the SDK. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express';
import { parseStrictJson, parseStrictJsonInParts, TOO_MANY_VALUES } from '../../../json/strict.ts';
import { wrongParams } from '../../../lab/mcp/wrong-params.ts';
import {
  FORBIDDEN_ARGUMENT,
  hasForbiddenArgument,
  idOf,
  wrongArgumentsResult,
} from '../../../mcp/tools/wrong-arguments.ts';
import { LONG_BODY, type LongBodies, type Parsing } from '../../runtime/long-bodies.ts';
import { present } from '../../runtime/present.ts';
import type { Holder } from '../../runtime/shared-limit.ts';
import { bytesReader, jsonText, mayBeLong, mostBodyBytes } from '../request-body.ts';

export type McpMessage = { method?: unknown; id?: unknown; params?: McpParams | null };

type McpParams = {
  name?: unknown;
  arguments?: { approval_id?: unknown } | null;
  requestId?: unknown;
  requestState?: unknown;
  taskId?: unknown;
};

/** The SDK's limit of a batch (its MAX_BATCH_SIZE); a longer one is refused with the SDK's error text. */
const MAX_MESSAGES = 100;

/** Revisions of MCP from this one on have no batches. A request without a revision is one of 2025-03-26 (Streamable HTTP, Protocol Version Header). */
const FIRST_WITHOUT_BATCHES = '2025-06-18';
const NO_BATCHES = `MCP has no batches since revision ${FIRST_WITHOUT_BATCHES}. Nothing was done. Send each message in a request of its own.`;

/** Enough for the largest call, 1 MiB, encoded in a message. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

/** Depth limit of a call (json/strict.ts) plus its message and `params`; a batch adds one level. */
const MAX_LEVELS = 64 + 2;
const ARGUMENTS = '/params/arguments/';

/**
 * Limit of objects, arrays, strings, numbers and literals in one body. The SDK traverses a message several times synchronously; a call that a model
 * writes has some hundreds.
 */
const MAX_VALUES = 10_000;
const TOO_MANY = `The request has more than ${MAX_VALUES.toLocaleString('en')} values. Nothing was done. Send less at a time, or use POST /v1/actions.`;
const ID_TWICE =
  'Two requests of the list have this id, so that their responses could not be distinguished. Nothing was done.';
/** Limit of members of a message, of its `params`, and of `_meta` in them: each is checked several times. */
const MAX_MEMBERS = 100;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

/** `value`: the whole body, which takes so many `bytes` of memory. `messages`: those in it; empty when it is neither an object nor a list of objects. */
export type McpBody =
  | { ok: true; value: unknown; messages: McpMessage[]; bytes: number }
  | { ok: false; answer: Response };

const readBytes = bytesReader(() => true, MAX_MESSAGE_BYTES);

/**
 * Reads the body of a request to `/mcp`: one message, or a batch as revision 2025-03-26 allows. It is parsed once, as strictly as the body of a call
 * (specification, Governed call), so that exactly what came is judged, shown and sent.
 *
 * @param holder whose body it is
 */
export async function readMcpBody(
  request: IncomingMessage,
  response: ServerResponse,
  longBodies: LongBodies,
  holder: Holder,
): Promise<McpBody> {
  const read = () => readMessages(request, response, longBodies.parsing(holder));
  if (!mayBeLong(request)) return await read();
  return await longBodies.read(holder, mostBodyBytes(request.headers, MAX_MESSAGE_BYTES), read);
}

async function readMessages(received: IncomingMessage, response: ServerResponse, parsing: Parsing): Promise<McpBody> {
  // All requests and responses here are Express's.
  const request = received as ExpressRequest;
  const unread = await readBytes(request, response as ExpressResponse);
  if (unread) return refused(unread.status, null, unread.status === 413 ? INVALID_REQUEST : PARSE_ERROR, unread.detail);
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  // Not kept for as long as the calls take.
  request.body = undefined;
  const text = jsonText(bytes, request.headers['content-type']);
  if (text === undefined) return refused(400, null, PARSE_ERROR, 'The body must be in UTF-8.');
  const isList = /^\s*\[/.test(text);
  const revision = request.headers['mcp-protocol-version'];
  if (isList && typeof revision === 'string' && revision >= FIRST_WITHOUT_BATCHES)
    return refused(400, null, INVALID_REQUEST, NO_BATCHES);
  const maxDepth = isList ? MAX_LEVELS + 1 : MAX_LEVELS;
  const limits = { maxDepth, maxValues: MAX_VALUES, nulAllowedIn: ['params'] };
  const parsed =
    bytes.length > LONG_BODY
      ? await parsing.inTurn(async (rest) => present(await parseStrictJsonInParts(text, limits, rest), 'value'))
      : parseStrictJson(text, limits);
  if (!parsed.ok) return misread(text, parsed.error);
  const value: unknown = parsed.value;
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MAX_MESSAGES)
    return refused(400, null, INVALID_REQUEST, `Invalid Request: Batch must not exceed ${MAX_MESSAGES} messages`);
  const messages = list.filter((one): one is McpMessage => typeof one === 'object' && one !== null);
  const wide = messages.find(isWide);
  if (wide)
    return refused(400, idOf(wide), INVALID_REQUEST, `It has more than ${MAX_MEMBERS} members. Nothing was done.`);
  const [first] = messages;
  const problem = isList || !first ? undefined : wrongParams(first);
  if (problem !== undefined) return refused(200, idOf(first), INVALID_PARAMS, problem);
  const twice = secondOfId(messages);
  if (twice) return refused(400, idOf(twice), INVALID_REQUEST, ID_TWICE);
  const odd = messages.find(hasForbiddenArgument);
  if (odd) return wrong(odd, FORBIDDEN_ARGUMENT);
  return { ok: true, value, messages, bytes: parsed.bytes };
}

/**
 * Returns a request whose id occurred earlier in the batch: both would be executed, but only one answer could be matched (JSON-RPC 2.0 section 6).
 */
function secondOfId(messages: McpMessage[]): McpMessage | undefined {
  const seen = new Set<unknown>();
  return messages.find((message) => isRequest(message) && seen.size === seen.add(message.id).size);
}

function isWide(message: McpMessage): boolean {
  const { params } = message;
  const meta = typeof params === 'object' && params !== null && '_meta' in params ? params._meta : undefined;
  return [message, params, meta].some(
    (value) => typeof value === 'object' && value !== null && Object.keys(value).length > MAX_MEMBERS,
  );
}

/** Errors in the arguments of a single call are returned to the model; other errors to the client. */
function misread(text: string, error: string): McpBody {
  if (error.endsWith(TOO_MANY_VALUES)) return refused(400, null, INVALID_REQUEST, TOO_MANY);
  // A long text is not parsed synchronously once more just to find out which call it belongs to.
  if (text.length > LONG_BODY) return refused(400, null, INVALID_REQUEST, `${error}. Nothing was done.`);
  let message: McpMessage | undefined;
  try {
    message = JSON.parse(text);
  } catch {
    return refused(400, null, PARSE_ERROR, `This is not JSON: ${error}`);
  }
  if (message?.method === 'tools/call' && error.startsWith(ARGUMENTS))
    return wrong(message, error.slice(ARGUMENTS.length));
  return refused(400, idOf(message), INVALID_REQUEST, `${error}. Nothing was done.`);
}

function wrong(message: McpMessage, detail: string): McpBody {
  const result = wrongArgumentsResult(message, detail);
  return { ok: false, answer: Response.json({ jsonrpc: '2.0', id: idOf(message), result }) };
}

function refused(status: number, id: string | number | null, code: number, message: string): McpBody {
  const headers = status === 413 ? { connection: 'close' } : undefined;
  const answer = Response.json(
    { jsonrpc: '2.0', id, error: { code, message } },
    { status, ...(headers && { headers }) },
  );
  return { ok: false, answer };
}

/** Whether the message needs an answer, and so may wait. Notifications, and answers of the client, are accepted without one. */
export const isRequest = ({ method, id }: McpMessage): boolean => method !== undefined && id !== undefined;

/** Whether the value can be a request's id (JSON-RPC 2.0 section 4; null is for messages without an id). */
export const isRequestId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number';
