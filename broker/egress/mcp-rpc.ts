/**
 * What an MCP server's HTTP answer says to a request of ours (JSON-RPC 2.0 over Streamable HTTP), as JSON or as a stream.
 * Exactly one answer with the id of the request counts. Everything that could pass for one and is none is refused.
 */
import { createParser } from 'eventsource-parser';
import { memberTexts } from '../../json/member-texts.ts';
import type { Answer, Enough } from './buffered-exchange.ts';
import { type Unreachable, type UnreachableCode, unreachable } from './unreachable.ts';

type Received = Extract<Answer, { kind: 'answer' }>;

export type RpcAnswer =
  /** JSON text of the result, as the server wrote it. */
  | { kind: 'result'; received: Received; text: string; value: Record<string, unknown> }
  /** JSON text of the error object. */
  | { kind: 'error'; received: Received; text: string; code: number }
  /** No JSON-RPC at all: a status that says why. */
  | { kind: 'http'; received: Received }
  | Unreachable;

/** Progress and log notices come before an answer; whoever sends more of them does not mean to answer. */
const MOST_MESSAGES = 1_000;

/** Reads the answer to the request with this id. Never throws. */
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
 * Stops reading a stream at the first message that is no mere notice: the answer, after which servers need not end it, or
 * what is refused.
 */
export function untilAnswered(): Enough {
  const decoder = new TextDecoder();
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
  if (isError(error) && result === undefined) return refusal(received, members.get('error')!);
  if (!isObject(result) || error !== undefined) return refuse('not_mcp', 'result');
  // Revision 2026-07-28: the tool wants something of whoever calls before it goes on. We declared that we give nothing.
  if (result.resultType !== undefined && result.resultType !== 'complete') return refuse('asked_back', 'result_type');
  return { kind: 'result', received, text: members.get('result')!, value: result };
}

function refusal(received: Received, text: string): RpcAnswer {
  return { kind: 'error', received, text, code: (JSON.parse(text) as { code: number }).code };
}

function eventsOf(body: string): string[] {
  const texts: string[] = [];
  const parser = createParser({
    onEvent: ({ data }) => {
      // An event without data keeps the stream alive, or makes it resumable, which nothing here is.
      if (data !== '') texts.push(data);
    },
  });
  parser.feed(body);
  return texts;
}

const refuse = (code: UnreachableCode, cause: string): Unreachable => unreachable(code, true, cause);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A notice is nothing to answer. Nor is a ping to somebody who is about to leave. */
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
  return (Array.isArray(header) ? header[0]! : (header ?? '')).split(';', 1)[0]!.trim().toLowerCase();
}
