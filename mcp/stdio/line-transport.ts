/**
 * JSON-RPC over lines, which answers also what it cannot take: the SDK's own transport drops lines that are not JSON, and
 * ends the connection over one that is too long, so that a client waits for nothing or loses the server. A call of which
 * something else would leave than what was written is answered here, and goes no further.
 */
import type { Readable, Writable } from 'node:stream';
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server';
import { idOf, wrongArgumentsResult } from '../tools/wrong-arguments.ts';
import { type Line, lineReader } from './lines.ts';
import { type Misread, misreadIn } from './one-reading.ts';

/** Four times what the broker takes in one call, escapes included. */
const MOST_LINE_BYTES = 4 * 1024 * 1024;

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;

type Id = string | number | null;

export function lineTransport(input: Readable, output: Writable, mostLineBytes = MOST_LINE_BYTES): Transport {
  let isClosed = false;

  const take = (line: Line): void => {
    if (isClosed) return;
    const read = readMessage(line, mostLineBytes);
    if (read === undefined) return;
    if ('message' in read) transport.onmessage?.(read.message);
    else output.write(`${JSON.stringify({ jsonrpc: '2.0', ...read })}\n`);
  };

  const read = lineReader(mostLineBytes, take);
  const ended = () => void transport.close();
  const failed = (error: Error) => {
    transport.onerror?.(error);
    ended();
  };

  const transport: Transport = {
    start: async () => {
      input.on('data', read);
      input.once('end', ended);
      input.once('close', ended);
      input.on('error', failed);
      // The client has gone: a pipe that is broken is no news.
      output.on('error', ended);
    },
    send: (message) =>
      new Promise((resolve, reject) => {
        if (isClosed) return reject(new Error('The client has gone.'));
        output.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
      }),
    close: async () => {
      if (isClosed) return;
      isClosed = true;
      input.off('data', read);
      input.pause();
      transport.onclose?.();
    },
  };
  return transport;
}

type Refused = { id: Id; error: { code: number; message: string } } | { id: Id; result: object };
const refused = (id: Id, code: number, message: string): Refused => ({ id, error: { code, message } });

/** The message, or what to answer instead; undefined for an empty line. */
function readMessage(line: Line, mostLineBytes: number): { message: JSONRPCMessage } | Refused | undefined {
  if (line.kind === 'too_long')
    return refused(
      idIn(line),
      INVALID_REQUEST,
      `The message is longer than ${mostLineBytes} bytes. Nothing was done: send less in one call.`,
    );
  if (line.text.trim() === '') return undefined;
  let value: unknown;
  try {
    value = JSON.parse(line.text);
  } catch (error) {
    return refused(null, PARSE_ERROR, `This is not JSON: ${(error as Error).message}`);
  }
  // Decoded with replacement characters it would be another message (RFC 8259 section 8.1).
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
  const misread = 'method' in message && message.method === 'tools/call' ? misreadIn(line.text) : undefined;
  return misread === undefined ? { message } : misreadCall(message, misread);
}

/** Of arguments the model reads what is wrong with them; of anything else, the client. */
function misreadCall(message: JSONRPCMessage, { place, reason }: Misread): Refused {
  const [params, member, ...inside] = place;
  if (params !== 'params' || member !== 'arguments' || inside.length === 0)
    return refused(idOf(message), INVALID_REQUEST, `${place.join('/')}: ${reason}. Nothing was sent.`);
  return { id: idOf(message), result: wrongArgumentsResult(message, `${inside.join('/')}: ${reason}`) };
}

/** The id of a request of which only the two ends are known: clients write it first or last. */
function idIn({ beginning, end }: Extract<Line, { kind: 'too_long' }>): Id {
  const text = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(-?\d+|"[^"\\]*")/.exec(beginning)?.[1];
  const last = /,\s*"id"\s*:\s*(-?\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(end)?.[1];
  const found = text ?? last;
  return found === undefined ? null : (JSON.parse(found) as Id);
}
