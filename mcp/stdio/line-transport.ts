/**
 * JSON-RPC over lines, with responses to invalid input: the SDK's transport drops lines that are not JSON, and closes the
 * connection on one that is too long, so that a client waits in vain or loses the server. A call that would be changed by
 * parsing (lossy numbers, duplicate members) is refused here.
 */
import type { Writable } from 'node:stream';
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server';
import { firstProblem, type Problem } from '../../json/first-problem.ts';
import { FORBIDDEN_ARGUMENT, hasForbiddenArgument, idOf, wrongArgumentsResult } from '../tools/wrong-arguments.ts';
import { type FirstLines, MAX_LINE_BYTES, type Over } from './first-answers.ts';
import type { Line } from './lines.ts';

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

/** How long requests that were received before the input ended may take, in milliseconds. Clients that end a server do not wait that long, and kill it. */
const DRAIN_MS = 10_000;

type Id = string | number | null;

/** `lines`: the client's messages, some of which may have been answered already (first-answers.ts). */
export function lineTransport(lines: FirstLines, output: Writable): Transport {
  let isClosed = false;
  let isEnding = false;
  let answered = lines.greeted;
  /** Ids of requests without a response. */
  const open = new Set<unknown>();

  const take = (line: Line): void => {
    if (isClosed) return;
    const read = readMessage(line);
    if (read === undefined) return;
    if (!('message' in read)) return void output.write(`${JSON.stringify({ jsonrpc: '2.0', ...read })}\n`);
    const { message } = read;
    if ('method' in message && 'id' in message) open.add(message.id);
    // A cancelled request gets no response.
    if ('method' in message && message.method === 'notifications/cancelled') open.delete(message.params?.requestId);
    transport.onmessage?.(message);
  };
  const closeWhenDone = () => {
    if (isEnding && open.size === 0) void transport.close();
  };
  const over: Over = ({ error, isGone }) => {
    if (error) transport.onerror?.(error);
    if (isGone) return void transport.close();
    isEnding = true;
    closeWhenDone();
    setTimeout(() => void transport.close(), DRAIN_MS).unref();
  };

  const transport: Transport = {
    start: async () => lines.handOver(take, over),
    send: (message) =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(new Error('The client has disconnected.'));
        if (!('method' in message)) open.delete(message.id);
        if (answered !== undefined && !('method' in message) && message.id === answered) {
          answered = undefined;
          closeWhenDone();
          return resolve();
        }
        output.write(`${JSON.stringify(message)}\n`, (error) => {
          if (error) reject(error);
          else resolve();
          closeWhenDone();
        });
      }),
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      lines.close();
      transport.onclose?.();
    },
  };
  return transport;
}

type Refused = { id: Id; error: { code: number; message: string } } | { id: Id; result: object };
const refused = (id: Id, code: number, message: string): Refused => ({ id, error: { code, message } });

/** The message, or the error response; undefined for an empty line. */
function readMessage(line: Line): { message: JSONRPCMessage } | Refused | undefined {
  if (line.kind === 'too_long')
    return refused(
      idIn(line),
      INVALID_REQUEST,
      `The message is longer than ${MAX_LINE_BYTES} bytes. Nothing was done: send less in one call.`,
    );
  if (line.text.trim() === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(line.text);
  } catch (error) {
    return refused(null, PARSE_ERROR, `This is not JSON: ${(error as Error).message}`);
  }
  // Decoding with replacement characters would change the message (RFC 8259 section 8.1).
  if (line.kind === 'not_utf8')
    return refused(idOf(value), PARSE_ERROR, 'The message is not in UTF-8. Nothing was done.');
  let message: JSONRPCMessage;
  try {
    message = parseJSONRPCMessage(value);
  } catch {
    return refused(
      idOf(value),
      INVALID_REQUEST,
      'This is no JSON-RPC 2.0 message: {"jsonrpc": "2.0", "id": …, "method": …, "params": {…}}, one to a line.',
    );
  }
  if (!('method' in message && message.method === 'tools/call')) return { message };
  const misread = misreadIn(line.text);
  if (misread) return misreadCall(message, misread);
  if (hasForbiddenArgument(value)) return wrong(message, FORBIDDEN_ARGUMENT);
  return { message };
}

/** Errors in arguments are returned to the model as a tool result; others to the client as JSON-RPC errors. */
function misreadCall(message: JSONRPCMessage, { place, reason }: Misread): Refused {
  const [params, member, ...inside] = place;
  if (params !== 'params' || member !== 'arguments' || inside.length === 0)
    return refused(idOf(message), INVALID_REQUEST, `${place.join('/')}: ${reason}. Nothing was sent.`);
  return wrong(message, `${inside.join('/')}: ${reason}`);
}

const wrong = (message: JSONRPCMessage, detail: string): Refused => ({
  id: idOf(message),
  result: wrongArgumentsResult(message, detail),
});

/** The id of a request of which only the first and last bytes are kept: clients write the id first or last. */
function idIn({ beginning, end }: Extract<Line, { kind: 'too_long' }>): Id {
  const text = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d+|"[^"\\]*")/.exec(beginning)?.[1];
  const last = /,\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(end)?.[1];
  const found = text ?? last;
  return found === undefined ? null : idOf({ id: JSON.parse(found) });
}

/** The path of the problem in the message, and what is wrong there. */
type Misread = { place: readonly (string | number)[]; reason: string };

/** The nesting that the broker accepts in a call, plus the message and its `params`. Deeper nesting could not be compared without a stack overflow. */
const MAX_LEVELS = 64 + 2;

/**
 * Returns the first number in `text`, which JSON.parse has accepted, that a double cannot represent, or the first duplicate member name; undefined when
 * there is none. The broker refuses both in its own input; here the line is parsed and serialised before it reaches the broker, so that the broker
 * could not detect either.
 */
export function misreadIn(text: string): Misread | undefined {
  const problem = firstProblem(text, { maxDepth: MAX_LEVELS, exactNumbers: true });
  return problem && { place: problem.place, reason: reasonOf(problem) };
}

function reasonOf({ kind, detail }: Problem): string {
  if (kind === 'inexact_number')
    return `write it as text, because the number ${detail} would be sent as another number`;
  if (kind === 'depth') return 'this is more levels deep than a call may be';
  return 'this member is there twice: write it once';
}
