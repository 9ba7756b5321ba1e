/**
 * The lab's MCP server: a stateless Streamable HTTP server with three tools and no secrets, for trying out a client or a broker.
 * It supports the handshake revisions up to 2025-11-25, and 2026-07-28, where each request is self-contained. It has no
 * sessions, and no state but a bounded list of notes.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { nameAcceptedTypes } from './mcp/accept.ts';
import { LAB_MAX_BODY_BYTES } from './mcp/bounds.ts';
import { makeNotes, type Notes } from './mcp/notes.ts';
import { addTools } from './mcp/tools.ts';
import { wrongParams } from './mcp/wrong-params.ts';

export type LabRequest = {
  /** The request URL. */
  url: string;
  /** As Node gives them, names in lower case. */
  headers: IncomingHttpHeaders;
  /** The parsed body, of at most LAB_MAX_BODY_BYTES. Undefined: it could not be read, and `problem` says why. */
  message: unknown;
  problem?: string;
};

/** `type` is absent without a body. A stream ends by itself within a minute. */
export type LabAnswer = { status: number; type?: string; body: string | ReadableStream<Uint8Array> };

export type LabMcp = {
  /** Answers one POST. `left`: aborted when the client disconnects. Never rejects. */
  answer(request: LabRequest, left: AbortSignal): Promise<LabAnswer>;
  notes: Pick<Notes, 'all'>;
  /** Ends the open streams. */
  close(): Promise<void>;
};

/** Limit of subscriptions, which are streams about tools that never change, and exist for trying out clients only. */
const MAX_SUBSCRIPTIONS = 16;
const MAX_STREAM_MS = 60_000;

const INSTRUCTIONS =
  'A server for trying things out: echo, whoami and write_note. It holds no secrets and verifies nobody; anyone may call it.';

/** `version`: of the program that contains the lab. `clock`: milliseconds since the Unix epoch. */
export function makeLabMcp(options: { version: string; clock?: () => number }): LabMcp {
  const notes = makeNotes(options.clock ?? Date.now);
  const handler = createMcpHandler(
    ({ requestInfo }) => {
      const server = new McpServer(
        { name: 'agent-broker-lab', title: 'Agent Broker lab', version: options.version },
        { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
      );
      addTools(server, notes, { headers: [...(requestInfo?.headers.keys() ?? [])].sort() });
      return server;
    },
    { maxSubscriptions: MAX_SUBSCRIPTIONS, maxRequestBodySize: LAB_MAX_BODY_BYTES },
  );
  return {
    notes,
    close: () => handler.close(),
    answer: async ({ url, headers, message, problem: unread }, left) => {
      if (message === undefined) return refusal(-32700, `Parse error: ${unread ?? 'the body is not JSON.'}`);
      // A batch would bypass rate limits. Revisions since 2025-06-18 have no batches.
      if (Array.isArray(message)) return refusal(-32600, 'Invalid request: batches are not supported.');
      const asked = typeof message === 'object' && message !== null ? (message as { id?: unknown }) : {};
      const problem = wrongParams(asked);
      if (problem !== undefined) return error(200, { id: asked.id, code: -32602, message: problem });
      const signal = AbortSignal.any([left, AbortSignal.timeout(MAX_STREAM_MS)]);
      const request = new Request(url, { method: 'POST', headers: webHeaders(headers), signal });
      const response = await handler.fetch(request, { parsedBody: message });
      const type = response.headers.get('content-type');
      const stream = type?.startsWith('text/event-stream') === true ? response.body : null;
      const body = stream ?? (await response.text());
      return { status: response.status, ...(type !== null && { type }), body };
    },
  };
}

function webHeaders(headers: IncomingHttpHeaders): Headers {
  const made = new Headers();
  for (const [name, value] of Object.entries(headers))
    for (const each of [value].flat()) if (each !== undefined) made.append(name, each);
  nameAcceptedTypes(made);
  return made;
}

const refusal = (code: number, message: string): LabAnswer => error(400, { id: null, code, message });

function error(status: number, { id, code, message }: { id: unknown; code: number; message: string }): LabAnswer {
  const body = JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } });
  return { status, type: 'application/json', body };
}
