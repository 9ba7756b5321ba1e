/**
 * The lab's MCP server: a stateless Streamable HTTP server with three tools and no secrets, to try a client or a broker
 * on. It speaks both eras of the protocol: the handshake revisions up to 2025-11-25, and 2026-07-28, where each request
 * stands for itself. No session, and nothing kept but a bounded list of notes.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { createMcpHandler, McpServer } from '../bundled/mcp-server.ts';
import { LAB_MAX_BODY_BYTES } from './mcp/bounds.ts';
import { makeNotes, type Notes } from './mcp/notes.ts';
import { addTools } from './mcp/tools.ts';

export type LabRequest = {
  /** Where the request was sent to. */
  url: string;
  /** As Node gives them, names in lower case. */
  headers: IncomingHttpHeaders;
  /** The body, parsed; it was no longer than LAB_MAX_BODY_BYTES. Undefined: it was no JSON. */
  message: unknown;
};

/** `type` is absent where there is no body. A stream ends by itself, after a minute at the latest. */
export type LabAnswer = { status: number; type?: string; body: string | ReadableStream<Uint8Array> };

export type LabMcp = {
  /** Answers one POST. `left`: whoever asked is gone. Never rejects. */
  answer(request: LabRequest, left: AbortSignal): Promise<LabAnswer>;
  notes: Pick<Notes, 'all'>;
  /** Ends the streams that are open. */
  close(): Promise<void>;
};

/** Subscriptions are streams about tools that never change: a client may try one, and nobody can fill the server with them. */
const MOST_SUBSCRIPTIONS = 16;
const LONGEST_STREAM_MS = 60_000;

const INSTRUCTIONS =
  'A server for trying things out: echo, whoami and write_note. It holds no secrets and verifies nobody; anyone may call it.';

/** `version`: of the program that it belongs to. `clock`: milliseconds since the Unix epoch. */
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
    { maxSubscriptions: MOST_SUBSCRIPTIONS, maxRequestBodySize: LAB_MAX_BODY_BYTES },
  );
  return {
    notes,
    close: () => handler.close(),
    answer: async ({ url, headers, message }, left) => {
      if (message === undefined) return refusal(-32700, 'Parse error: the body is not JSON, or not application/json.');
      // A batch is many requests at the price of one. The revisions since 2025-06-18 have none.
      if (Array.isArray(message)) return refusal(-32600, 'Invalid request: batches are not taken here.');
      const signal = AbortSignal.any([left, AbortSignal.timeout(LONGEST_STREAM_MS)]);
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
  return made;
}

function refusal(code: number, message: string): LabAnswer {
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } });
  return { status: 400, type: 'application/json', body };
}
