/**
 * Reads the JSON-RPC 2.0 response to a request of the broker from an MCP server's HTTP response, as JSON or as an event stream. Accepts
 * exactly one response with the request's id; anything ambiguous is refused.
 */

import { isUtf8 } from 'node:buffer';
import { createParser } from 'eventsource-parser';
import { objectMembers } from '../../../json/member-texts.ts';
import { JsonTokens } from '../../../json/tokens.ts';
import { LONG_BODY } from '../../runtime/long-bodies.ts';
import { inSlices, runToEnd } from '../../runtime/pace.ts';
import { essenceOf } from '../../wire/media-type.ts';
import type { Answer, Enough } from '../buffered-exchange.ts';
import { isHeaderValue } from '../outbound-request.ts';
import { type Unreachable, type UnreachableCode, unreachable } from '../unreachable.ts';

type Received = Extract<Answer, { kind: 'answer' }>;

export type RpcAnswer =
  /** JSON text of the result object, as the server wrote it. `isTask`: it is a task handle (`resultType`), where allowed. */
  | { kind: 'result'; received: Received; text: string; isTask?: true }
  /** JSON text of the error object. */
  | { kind: 'error'; received: Received; text: string; code: number }
  /** Not JSON-RPC; the HTTP status tells the reason. */
  | { kind: 'http'; received: Received }
  | Unreachable;

/** Position in a stream: the id of its last event, and the retry delay that the server asked for. Updated as events arrive. */
export type StreamPlace = { lastEventId?: string | undefined; retryMs?: number | undefined };

/** The cause for a stream, or a list of messages, that ended without the answer. */
export const NO_ANSWER = 'no_answer';

/** Progress and log notifications precede a response; a server that sends more than this will not respond. */
const MAX_MESSAGES = 1_000;
/** Most characters of a message text that are read to find out whether it is a notification. */
const MAX_NOTICE_LENGTH = 64 * 1024;
/** Most members of a message, a result or an error. */
const MAX_MEMBERS = 10_000;

/** Reads the response to the request with this id, a long one in slices. `takesTasks`: as the request declared. Never throws. */
export async function readRpc(answer: Answer, id: string, takesTasks = false): Promise<RpcAnswer> {
  const isLong = answer.kind === 'answer' && answer.body.length > LONG_BODY;
  return isLong ? await inSlices(readingRpc(answer, id, takesTasks)) : runToEnd(readingRpc(answer, id, takesTasks));
}

/** The same as a generator, which yields between slices. */
export function* readingRpc(answer: Answer, id: string, takesTasks = false): Generator<void, RpcAnswer> {
  if (answer.kind === 'unreachable') return answer;
  const type = mediaType(answer);
  const text = answer.body.toString('utf8');
  const isDecodable = isUtf8(type === 'text/event-stream' ? wholeLines(answer.body) : answer.body);
  if (answer.status < 200 || answer.status >= 300) {
    const message = type === 'application/json' && isDecodable ? yield* objectMembers(text, MAX_MEMBERS) : undefined;
    if (message === 'unclear') return refuse('not_mcp', 'twice');
    const isRefusal = isRpc(message) && [id, null].includes(small(message.get('id')) as string | null);
    const error = message?.get('error');
    const code = isRefusal && error !== undefined ? yield* codeOf(error) : undefined;
    if (code === undefined || error === undefined) return { kind: 'http', received: answer };
    return { kind: 'error', received: answer, text: error, code };
  }
  if (!isDecodable && MESSAGES.includes(type)) return refuse('not_utf8', 'encoding');
  if (type === 'application/json') return yield* readMessages(answer, [text], { id, takesTasks });
  if (type === 'text/event-stream') return yield* readMessages(answer, yield* eventsOf(text), { id, takesTasks });
  return refuse('not_mcp', 'content_type');
}

const MESSAGES = ['application/json', 'text/event-stream'];

/** A stream is read until the response, so that its end may be a part of a later character. */
const wholeLines = (body: Buffer): Buffer =>
  body.subarray(0, 1 + Math.max(body.lastIndexOf('\n'), body.lastIndexOf('\r')));

/**
 * Stops reading a stream at the first message that is not a notification: the response, after which servers need not close the stream, or
 * an invalid message. Records the position in `place`.
 */
export function untilAnswered(place: StreamPlace = {}): Enough {
  // The parser handles a byte order mark, as in `readRpc`: of two, only the first is a mark.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let answered = false;
  let messages = 0;
  const parser = createParser({
    onRetry: (ms) => {
      place.retryMs = ms;
    },
    onEvent: ({ id, event, data }) => {
      if (id !== undefined) place.lastEventId = isEventId(id) ? id : undefined;
      if (isMessage(event, data) && (++messages > MAX_MESSAGES || !isNoticeText(data))) answered = true;
    },
  });
  return (chunk, headers) => {
    if (mediaType({ headers }) !== 'text/event-stream') return false;
    parser.feed(decoder.decode(chunk, { stream: true }));
    return answered;
  };
}

const MAX_EVENT_ID_LENGTH = 1_024;

/** Whether an event id can be sent in a header. */
const isEventId = (id: string): boolean => id !== '' && id.length <= MAX_EVENT_ID_LENGTH && isHeaderValue(id);

type Asked = { id: string; takesTasks: boolean };

function* readMessages(
  received: Received,
  texts: readonly string[],
  { id, takesTasks }: Asked,
): Generator<void, RpcAnswer> {
  let found: RpcAnswer | undefined;
  if (texts.length > MAX_MESSAGES) return refuse('not_mcp', 'messages');
  for (const text of texts) {
    const message = yield* objectMembers(text, MAX_MEMBERS);
    if (message === 'unclear') return refuse('not_mcp', 'twice');
    if (!isRpc(message)) return refuse('not_mcp', 'message');
    if (message.has('method')) {
      if (!isNotice(message)) return refuse('asked_back', 'request');
      continue;
    }
    if (small(message.get('id')) !== id) return refuse('not_mcp', 'id');
    if (found !== undefined) return refuse('not_mcp', 'twice');
    found = yield* answerIn(received, message, takesTasks);
    yield;
  }
  return found ?? refuse('not_mcp', NO_ANSWER);
}

type Members = ReadonlyMap<string, string>;

function* answerIn(received: Received, message: Members, takesTasks: boolean): Generator<void, RpcAnswer> {
  const { result, error } = { result: message.get('result'), error: message.get('error') };
  if (error !== undefined) {
    const code = result === undefined ? yield* codeOf(error) : undefined;
    return code === undefined ? refuse('not_mcp', 'result') : { kind: 'error', received, text: error, code };
  }
  const members = result === undefined ? undefined : yield* objectMembers(result, MAX_MEMBERS);
  if (members === 'unclear') return refuse('not_mcp', 'twice');
  if (result === undefined || members === undefined) return refuse('not_mcp', 'result');
  // Revision 2026-07-28: the tool asks for input (a capability that was not declared), or returns a task.
  const type = members.get('resultType');
  if (takesTasks && small(type) === 'task') return { kind: 'result', received, text: result, isTask: true };
  if (type !== undefined && small(type) !== 'complete') return refuse('asked_back', 'result_type');
  return { kind: 'result', received, text: result };
}

/** The code of an error object; undefined when it is malformed. */
function* codeOf(error: string): Generator<void, number | undefined> {
  const members = yield* objectMembers(error, MAX_MEMBERS);
  if (members === undefined || members === 'unclear') return undefined;
  const code = small(members.get('code'));
  return Number.isInteger(code) && members.get('message')?.startsWith('"') ? (code as number) : undefined;
}

/**
 * Whether an event is a JSON-RPC message. An event without data is a keep-alive, or sets an id for resuming; an event of another type
 * (`ping`, `keepalive`) is a keep-alive too, whatever its data: MCP clients ignore it, as browsers do.
 */
const isMessage = (type: string | undefined, data: string): boolean =>
  data !== '' && (type === undefined || type === 'message');

const PIECE = 64 * 1024;

function* eventsOf(body: string): Generator<void, string[]> {
  const texts: string[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (isMessage(event, data)) texts.push(data);
    },
  });
  for (let at = 0; at < body.length; at += PIECE) {
    parser.feed(body.slice(at, at + PIECE));
    yield;
  }
  return texts;
}

const refuse = (code: UnreachableCode, cause: string): Unreachable => unreachable(code, true, cause);

const MAX_SMALL = 1_024;

/** Parses a member that is short in every valid message; for a long one returns a unique symbol, which equals nothing. */
const small = (text: string | undefined): unknown =>
  text === undefined ? undefined : text.length > MAX_SMALL ? Symbol('long') : JSON.parse(text);

const isRpc = (message: Members | undefined): message is Members => small(message?.get('jsonrpc')) === '2.0';

/** Notifications need no response; neither does a ping, because the connection is about to close. */
const isNotice = (message: Members): boolean =>
  message.has('method') && (!message.has('id') || small(message.get('method')) === 'ping');

/**
 * Whether a message text is a notification. Of a long text only the beginning is read: it must name a method before any result or error.
 */
function isNoticeText(text: string): boolean {
  if (text.length <= MAX_NOTICE_LENGTH) {
    const message = runToEnd(objectMembers(text, MAX_MEMBERS));
    return message !== undefined && message !== 'unclear' && isNotice(message);
  }
  const tokens = new JsonTokens(text.slice(0, MAX_NOTICE_LENGTH));
  for (;;) {
    const token = tokens.next();
    if (token === 'bad' || token === 'end') return false;
    if (token !== 'name' || tokens.depth > 1) continue;
    const name = text.slice(tokens.start, tokens.end);
    if (name === '"method"') return true;
    if (name === '"result"' || name === '"error"') return false;
  }
}

function mediaType({ headers }: Pick<Received, 'headers'>): string {
  const header = headers['content-type'];
  return essenceOf(Array.isArray(header) ? header[0] : header);
}
