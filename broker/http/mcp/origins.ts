/** Lets web pages of certain origins use the MCP servers from browsers (Fetch Standard, CORS protocol). */
import type { RequestHandler } from 'express';
import { OAUTH_PATHS } from '../../oauth-server/metadata.ts';
import type { Services } from '../../services.ts';
import { isLabOrigin } from '../routes/lab-mcp.ts';

/** What an MCP client requests itself, beside the metadata, which pages of any origin may read. */
const OF_MCP: readonly string[] = ['/mcp', OAUTH_PATHS.registration, OAUTH_PATHS.token, OAUTH_PATHS.revocation];

/** Headers of answers that MCP clients read. */
const EXPOSED = 'WWW-Authenticate, Mcp-Session-Id, Mcp-Protocol-Version, Retry-After';

/**
 * Adds the permission to every answer to a page of these origins, refusals included, and answers its preflight requests. Never with credentials: clients
 * send a token, and no cookie counts here.
 */
export function allowMcpOrigins({ broker: { baseUrl, config } }: Services): RequestHandler {
  const isAllowed = (path: string, origin: string): boolean =>
    (OF_MCP.includes(path) && config.mcpOrigins.includes(origin)) ||
    (path === '/lab/mcp' && isLabOrigin(baseUrl, origin));
  return (request, response, next) => {
    const { origin } = request.headers;
    if (origin === undefined || !isAllowed(request.path, origin)) return next();
    response.setHeader('Access-Control-Allow-Origin', origin);
    response.setHeader('Access-Control-Expose-Headers', EXPOSED);
    response.setHeader('Vary', 'Origin');
    if (request.method !== 'OPTIONS') return next();
    response.writeHead(204, {
      'Access-Control-Allow-Methods': 'POST, GET, DELETE',
      // The asterisk does not include Authorization.
      'Access-Control-Allow-Headers': 'Authorization, *',
      'Access-Control-Max-Age': '7200',
      'Cache-Control': 'no-store',
    });
    response.end();
  };
}
