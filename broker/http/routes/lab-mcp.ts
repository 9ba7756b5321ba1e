/** The lab's MCP server, for trying things out (specification, Discovery: POST /lab/mcp). It has no access to the broker. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import { LAB_MAX_BODY_BYTES } from '../../../lab/mcp/bounds.ts';
import type { LabAnswer } from '../../../lab/mcp.ts';
import type { Services } from '../../services.ts';
import { onDisconnect } from '../disconnects.ts';
import { Refusal } from '../errors.ts';
import type { Reply } from '../reply.ts';
import { requestedHost } from '../request-guard.ts';
import { route } from '../route.ts';

/** A JSON-RPC 2.0 request; its content is validated by the MCP server. */
const JsonRpcRequest = z
  .looseObject({ jsonrpc: z.unknown().optional(), method: z.unknown().optional() })
  .describe('A JSON-RPC 2.0 request of the Model Context Protocol.');

const JsonRpcError = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    // A number of a malformed request is returned as it came.
    id: z.union([z.string(), z.number(), z.null()]).optional(),
    error: z.looseObject({ code: z.int(), message: z.string() }),
  })
  .meta({ id: 'JsonRpcError' });

/** POST /lab/mcp: stateless Streamable HTTP. */
export const labMcp = route({
  method: 'POST',
  path: '/lab/mcp',
  auth: 'none',
  limit: { name: 'lab-mcp', perMinute: 60, per: 'address' },
  capability: 'lab.mcp',
  summary: 'An MCP server to try a client on: echo, whoami and write_note. It holds no secrets and verifies nobody.',
  body: JsonRpcRequest,
  maxBodyBytes: LAB_MAX_BODY_BYTES,
  nulAllowedIn: ['params'],
  answers: {
    200: {
      description: 'A JSON-RPC response, or a stream of events of which one is it.',
      schema: z.looseObject({ jsonrpc: z.literal('2.0') }),
      also: { 'text/event-stream': z.string().describe('Server-Sent Events, each a JSON-RPC message') },
    },
    202: { description: 'A notification was accepted.', empty: true },
    400: { description: 'The body is not a valid request.', schema: JsonRpcError },
    404: { description: 'There is no such method (revision 2026-07-28).', schema: JsonRpcError },
    406: { description: 'Accept does not cover both types of a 200.', schema: JsonRpcError },
  },
  errors: ['forbidden', 'misdirected_request', 'payload_too_large'],
  onMalformed: ({ services, request }, { body, detail }) => answer(services, request, body, detail),
  handle: ({ services, request, body }) => answer(services, request, body),
});

/** `problem`: why the body could not be read. */
async function answer(
  services: Services,
  request: IncomingMessage,
  message: unknown,
  problem?: string,
): Promise<Reply> {
  refuseForeign(services.broker.baseUrl, request);
  const left = new AbortController();
  const url = `${services.broker.baseUrl}/lab/mcp`;
  const lab = await services.lab.open();
  return replyOf(
    await lab.answer(
      { url, headers: request.headers, message, ...(problem !== undefined && { problem }) },
      left.signal,
    ),
    left,
  );
}

function replyOf({ status, type, body }: LabAnswer, left: AbortController): Reply {
  const typed = { status, ...(type !== undefined && { type }) };
  if (typeof body === 'string') return body === '' ? typed : { ...typed, body };
  return {
    ...typed,
    stream: (response: ServerResponse) => {
      onDisconnect(response, () => left.abort());
      // Cut off by the reader or by the time limit, so there is nobody to report the error to.
      pipeline(Readable.fromWeb(body as never), response).catch(() => response.destroy());
    },
  };
}

/**
 * A page on the web may point its own name at this machine and send requests with its own origin (DNS rebinding), and a page of another site may post
 * here without reading the answer. So Host and Origin have to name this broker, or this machine.
 */
function refuseForeign(baseUrl: string, request: IncomingMessage): void {
  if (!namesOf(baseUrl).includes(requestedHost(request) ?? ''))
    throw new Refusal('misdirected_request', `The Host header names another server. Use ${baseUrl}/lab/mcp.`);
  const { origin } = request.headers;
  if (origin !== undefined && !isLabOrigin(baseUrl, origin))
    throw new Refusal('forbidden', 'Pages of other sites may not use this server: the Origin header names one.');
}

const namesOf = (baseUrl: string): string[] => [new URL(baseUrl).hostname, 'localhost', '127.0.0.1', '[::1]'];

/** Whether pages of this origin may use the lab: those of this broker, and of this machine. */
export const isLabOrigin = (baseUrl: string, origin: string): boolean =>
  namesOf(baseUrl).includes(URL.parse(origin)?.hostname ?? '');
