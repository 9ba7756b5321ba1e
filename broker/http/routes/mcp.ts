/** POST /mcp: the broker's tools for clients that speak Streamable HTTP. */
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { readBuild } from '../../build.ts';
import { Refusal } from '../errors.ts';
import { makeMcpServer } from '../mcp-server.ts';
import { route } from '../route.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** Longer than any tool waits. A stream of news is opened again by its client. */
const MAX_REQUEST_MS = 120_000;

const build = readBuild();

/**
 * Stateless: each request stands by itself, so any replica answers it, and there is nothing to GET or DELETE. Requests of
 * both protocol eras: those that shook hands (up to 2025-11-25), and those that need not (2026-07-28).
 */
export const mcp = route({
  method: 'POST',
  path: '/mcp',
  auth: 'mcp_client',
  limit: { name: 'mcp', perMinute: 600, per: 'agent' },
  atOnce: { perAddress: 1_000, inAll: 2_000, perAgent: 32 },
  capability: 'mcp',
  summary: 'The tools, for MCP clients that connect over HTTP.',
  answers: { 200: 'A JSON-RPC answer, or a stream of server-sent events that ends with it.', 202: 'Taken.' },
  errors: ['forbidden', 'rate_limited', 'too_many_streams'],
  handle: async ({ governor, who, request }) => {
    const { baseUrl, log } = governor.broker;
    const { origin } = request.headers;
    if (origin !== undefined && origin !== baseUrl)
      throw new Refusal('forbidden', 'A web page elsewhere makes this request. Connect from the MCP client itself.');
    const onerror = (error: Error) => log.debug({ err: error }, 'an MCP request was refused');
    const handler = createMcpHandler(() => makeMcpServer(governor, who, build.version), {
      onerror,
      maxRequestBodySize: MAX_BODY_BYTES,
      maxSubscriptions: 1,
    });
    const answer = toNodeHandler(handler, { onerror, maxRequestBodySize: MAX_BODY_BYTES });
    return {
      status: 200,
      handOver: (response) => {
        const over = setTimeout(() => response.destroy(), MAX_REQUEST_MS);
        response.once('close', () => {
          clearTimeout(over);
          void handler.close();
        });
        void answer(request as Parameters<typeof answer>[0], response);
      },
    };
  },
});
