/** POST /mcp: the broker's tools for clients of Streamable HTTP. */
import { readCaller } from '../../calls/caller.ts';
import { Refusal } from '../errors.ts';
import { MAX_BODIES, MCP_LIMIT } from '../mcp/request-slots.ts';
import { route } from '../route.ts';

/**
 * Stateless: any replica can answer any request, and there is nothing to GET or DELETE. Serves both protocol generations: clients that send
 * `initialize` (up to 2025-11-25), and those that need not (2026-07-28).
 */
export const mcp = route({
  method: 'POST',
  path: '/mcp',
  auth: 'mcp_client',
  limit: MCP_LIMIT,
  concurrency: { perAddress: 1_000, overall: 2_000, perAgent: MAX_BODIES },
  capability: 'mcp',
  summary: 'The tools, for MCP clients that connect over HTTP.',
  answers: { 200: 'A JSON-RPC answer, or a stream of server-sent events that ends with it.', 202: 'Taken.' },
  errors: ['forbidden', 'invalid_request', 'rate_limited', 'too_many_streams'],
  handle: async (context) => {
    const { services, request } = context;
    const { origin } = request.headers;
    const { baseUrl, config } = services.broker;
    if (origin !== undefined && ![baseUrl, ...config.mcpOrigins].includes(origin))
      throw new Refusal(
        'forbidden',
        'Requests from web pages of other origins are refused, except of those in MCP_ORIGINS. Connect from the MCP client itself.',
      );
    const named = readCaller(request.headersDistinct['x-svc-caller'], undefined);
    if (!named.ok) throw new Refusal('invalid_request', named.error);
    // Loaded lazily to save memory: most brokers have no MCP client.
    const { serveMcp } = await import('../mcp/serve.ts');
    return { status: 200, handOver: (response) => serveMcp(context, response, named.caller) };
  },
});
