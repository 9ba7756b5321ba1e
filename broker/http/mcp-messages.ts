/** The JSON-RPC messages of a request to `/mcp`: read once, for the broker's own checks and for the SDK. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express';
import { parseStrictJson, parseStrictJsonInParts, TOO_MANY_VALUES } from '../../json/strict.ts';
import { wrongParams } from '../../lab/mcp/wrong-params.ts';
import {
  FORBIDDEN_ARGUMENT,
  hasForbiddenArgument,
  idOf,
  wrongArgumentsResult,
} from '../../mcp/tools/wrong-arguments.ts';
import { LONG_BODY, type Parsing } from '../runtime/long-bodies.ts';
import { bytesReader, jsonText } from './request-body.ts';

export type McpMessage = { method?: unknown; id?: unknown; params?: McpParams | null };

type McpParams = {
  name?: unknown;
  arguments?: { approval_id?: unknown } | null;
  requestId?: unknown;
  requestState?: unknown;
  taskId?: unknown;
};

/** As many as the SDK takes in one list (its MAX_BATCH_SIZE), in whose words a longer one is refused. */
const MOST_MESSAGES = 100;

/** A call of 1 MiB, the largest there is, as it stands in a message. */
const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;

/** Levels that a call takes (json/strict.ts), below its message and `params`; in a list, one more. */
const MOST_LEVELS = 64 + 2;
const ARGUMENTS = '/params/arguments/';

/**
 * Objects, arrays, strings, numbers and literals of one body. The SDK looks through a message several times, in one piece; a call that is
 * written by a model has some hundreds.
 */
const MOST_VALUES = 10_000;
const TOO_MANY = `The request has more than ${MOST_VALUES.toLocaleString('en')} values. Nothing was done. Send less at a time, or use POST /v1/actions.`;
const ID_TWICE =
  'Two requests of the list have this id, so that one answer could not be told from the other. Nothing was done.';
/** Members of a message, of its `params`, and of `_meta` in them: each is checked several times. */
const MOST_MEMBERS = 100;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const INVALID_PARAMS = -32602;

/** `value`: the whole body. `messages`: those in it; none of what is neither an object nor a list of them. */
export type McpBody = { ok: true; value: unknown; messages: McpMessage[] } | { ok: false; answer: Response };

const readBytes = bytesReader(() => true, MAX_MESSAGE_BYTES);

/**
 * Reads the body of a request to `/mcp`: one message, or a list of them as revision 2025-03-26 allows. It is parsed once, as
 * strictly as the body of a call (specification, Governed call), so that what is judged, shown and sent is what came.
 *
 * @param parsing what parses a long one
 */
export async function readMcpBody(
  received: IncomingMessage,
  response: ServerResponse,
  parsing: Parsing,
): Promise<McpBody> {
  // Every request and response here is Express's.
  const request = received as ExpressRequest;
  const unread = await readBytes(request, response as ExpressResponse);
  if (unread) return refused(unread.status, null, unread.status === 413 ? INVALID_REQUEST : PARSE_ERROR, unread.detail);
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const text = jsonText(bytes, request.headers['content-type']);
  if (text === undefined) return refused(400, null, PARSE_ERROR, 'The body must be in UTF-8.');
  const isList = /^\s*\[/.test(text);
  const maxDepth = isList ? MOST_LEVELS + 1 : MOST_LEVELS;
  const limits = { maxDepth, maxValues: MOST_VALUES, nulAllowedIn: ['params'] };
  const parsed =
    bytes.length > LONG_BODY
      ? await parsing((rest) => parseStrictJsonInParts(text, limits, rest))
      : parseStrictJson(text, limits);
  if (!parsed.ok) return misread(text, parsed.error);
  const value: unknown = parsed.value;
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MOST_MESSAGES)
    return refused(400, null, INVALID_REQUEST, `Invalid Request: Batch must not exceed ${MOST_MESSAGES} messages`);
  const messages = list.filter((one): one is McpMessage => typeof one === 'object' && one !== null);
  const wide = messages.find(isWide);
  if (wide)
    return refused(400, idOf(wide), INVALID_REQUEST, `It has more than ${MOST_MEMBERS} members. Nothing was done.`);
  const [first] = messages;
  const problem = isList || !first ? undefined : wrongParams(first);
  if (problem !== undefined) return refused(200, idOf(first), INVALID_PARAMS, problem);
  const twice = secondOfId(messages);
  if (twice) return refused(400, idOf(twice), INVALID_REQUEST, ID_TWICE);
  const odd = messages.find(hasForbiddenArgument);
  if (odd) return wrong(odd, FORBIDDEN_ARGUMENT);
  return { ok: true, value, messages };
}

/** A request with the id of one before it in the list: both would be made, and one answer would come (JSON-RPC 2.0 section 6). */
function secondOfId(messages: McpMessage[]): McpMessage | undefined {
  const seen = new Set<unknown>();
  return messages.find((message) => isRequest(message) && seen.size === seen.add(message.id).size);
}

function isWide(message: McpMessage): boolean {
  const { params } = message;
  const meta = typeof params === 'object' && params !== null && '_meta' in params ? params._meta : undefined;
  return [message, params, meta].some(
    (value) => typeof value === 'object' && value !== null && Object.keys(value).length > MOST_MEMBERS,
  );
}

/** Of the arguments of one call the model reads what is wrong with them; of anything else, the client. */
function misread(text: string, error: string): McpBody {
  if (error.endsWith(TOO_MANY_VALUES)) return refused(400, null, INVALID_REQUEST, TOO_MANY);
  // To find out whose it is, a long text is not parsed once more, in one piece.
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

/** What is to be answered, and so may wait. Notifications, and answers of the client's, are taken and that is all. */
export const isRequest = ({ method, id }: McpMessage): boolean => method !== undefined && id !== undefined;

/** Whether it can name a request (JSON-RPC 2.0 section 4; null is for what has no id). */
export const isRequestId = (id: unknown): id is string | number => typeof id === 'string' || typeof id === 'number';
