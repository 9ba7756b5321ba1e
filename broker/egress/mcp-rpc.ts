/**
 * Reads the JSON-RPC 2.0 response to a request of ours from an MCP server's HTTP response, as JSON or as an event stream.
 * Exactly one response with the id of the request is accepted. Anything ambiguous is refused.
 */

import { createParser } from 'eventsource-parser';
import { memberTexts } from '../../json/member-texts.ts';
import { present } from '../policy/present.ts';
import type { Answer, Enough } from './buffered-exchange.ts';
import { type Unreachable, type UnreachableCode, unreachable } from './unreachable.ts';

type Received = Extract<Answer, { kind: 'answer' }>;

export type RpcAnswer =
  /** JSON text of the result, as the server wrote it. */
  | { kind: 'result'; received: Received; text: string; value: Record<string, unknown> }
  /** JSON text of the error object. */
  | { kind: 'error'; received: Received; text: string; code: number }
  /** No JSON-RPC: the HTTP status says why. */
  | { kind: 'http'; received: Received }
  | Unreachable;

/** Progress and log notifications come before a response; a server that sends more will not respond. */
const MOST_MESSAGES = 1_000;

/** Reads the response to the request with this id. Never throws. */
export function readRpc(answer: Answer, id: string): RpcAnswer {
  if (answer.kind === 'unreachable') return answer;
  const type = mediaType(answer);
  const isSuccess = answer.status >= 200 && answer.status < 300;
  if (!isSuccess) {
    const message = type === 'application/json' ? parseObject(answer.body.toString('utf8')) : undefined;
    const isRefusal =
      message?.jsonrpc === '2.0' && (message.id === id || message.id === null) && isError(message.error);
    if (!isRefusal) return { kind: 'http', received: answer };
    const text = memberTexts(answer.body.toString('utf8'))?.get('error');
    return text === undefined ? refuse('not_mcp', 'twice') : refusal(answer, text);
  }
  if (type === 'application/json') return readMessages(answer, [answer.body.toString('utf8')], id);
  if (type === 'text/event-stream') return readMessages(answer, eventsOf(answer.body.toString('utf8')), id);
  return refuse('not_mcp', 'content_type');
}

/**
 * Stops reading a stream at the first message that is not a notification: the response, after which servers need not close
 * it, or something that is refused.
 */
export function untilAnswered(): Enough {
  // A byte order mark is left to the parser, as in `readRpc`: of two only the first one is one.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let answered = false;
  let messages = 0;
  const parser = createParser({
    onEvent: ({ data }) => {
      const message = parseObject(data);
      if (data !== '' && (++messages > MOST_MESSAGES || !isNotice(message))) answered = true;
    },
  });
  return (chunk, headers) => {
    if (mediaType({ headers }) !== 'text/event-stream') return false;
    parser.feed(decoder.decode(chunk, { stream: true }));
    return answered;
  };
}

function readMessages(received: Received, texts: readonly string[], id: string): RpcAnswer {
  let found: RpcAnswer | undefined;
  if (texts.length > MOST_MESSAGES) return refuse('not_mcp', 'messages');
  for (const text of texts) {
    const message = parseObject(text);
    if (message?.jsonrpc !== '2.0') return refuse('not_mcp', 'message');
    if (message.method !== undefined) {
      if (!isNotice(message)) return refuse('asked_back', 'request');
      continue;
    }
    if (message.id !== id) return refuse('not_mcp', 'id');
    if (found !== undefined) return refuse('not_mcp', 'twice');
    found = answerIn(received, message, text);
  }
  return found ?? refuse('not_mcp', 'no_answer');
}

function answerIn(received: Received, message: Record<string, unknown>, text: string): RpcAnswer {
  const members = memberTexts(text);
  if (members === undefined) return refuse('not_mcp', 'twice');
  const { result, error } = message;
  if (isError(error) && result === undefined) return refusal(received, present(members.get('error'), 'error'));
  if (!isObject(result) || error !== undefined) return refuse('not_mcp', 'result');
  // Revision 2026-07-28: the tool asks its caller for input. We declared no such capability.
  if (result.resultType !== undefined && result.resultType !== 'complete') return refuse('asked_back', 'result_type');
  return { kind: 'result', received, text: present(members.get('result'), 'result'), value: result };
}

function refusal(received: Received, text: string): RpcAnswer {
  return { kind: 'error', received, text, code: (JSON.parse(text) as { code: number }).code };
}

function eventsOf(body: string): string[] {
  const texts: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      // An event without data is a keep-alive or an id for resuming, which is not supported here.
      if (data !== '') texts.push(data);
    },
  });
  parser.feed(body);
  return texts;
}

const refuse = (code: UnreachableCode, cause: string): Unreachable => unreachable(code, true, cause);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Notifications need no response, and neither does a ping, because we are about to disconnect. */
const isNotice = (message: Record<string, unknown> | undefined): boolean =>
  message?.method !== undefined && (message.id === undefined || message.method === 'ping');

const isError = (value: unknown): boolean =>
  isObject(value) && Number.isInteger(value.code) && typeof value.message === 'string';

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function mediaType({ headers }: Pick<Received, 'headers'>): string {
  const header = headers['content-type'];
  const [type = ''] = (Array.isArray(header) ? (header[0] ?? '') : (header ?? '')).split(';', 1);
  return type.trim().toLowerCase();
}
