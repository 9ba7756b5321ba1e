/** An MCP server like those of the SDK's first generation: it is its own authorization server, by the SDK's router. */
import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import type { OAuthServerProvider } from '@modelcontextprotocol/sdk/server/auth/provider.js';
import {
  createOAuthMetadata,
  getOAuthProtectedResourceMetadataUrl,
  mcpAuthRouter,
} from '@modelcontextprotocol/sdk/server/auth/router.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { OAuthClientInformationFull } from '@modelcontextprotocol/sdk/shared/auth.js';
import express from 'express';
import { afterFile } from '../runner/after-file.ts';

export type SdkAuthServer = {
  url: string;
  /** `localhost:port`, for AGENT_BROKER_ALLOW_PRIVATE. */
  address: string;
  /** Registered clients. */
  clients: Map<string, OAuthClientInformationFull>;
  /** How often tokens were issued, by `grant_type`. */
  given: { authorization_code: number; refresh_token: number };
};

/** Starts the server, which consents without asking; it ends with the test file. */
export async function startSdkAuthServer(): Promise<SdkAuthServer> {
  const clients: SdkAuthServer['clients'] = new Map();
  const given: SdkAuthServer['given'] = { authorization_code: 0, refresh_token: 0 };
  const challenges = new Map<string, string>();
  const access = new Map<string, { clientId: string; scopes: string[] }>();
  const issue = (client: OAuthClientInformationFull, how: keyof SdkAuthServer['given'], scopes: string[]) => {
    given[how]++;
    const token = randomUUID();
    access.set(token, { clientId: client.client_id, scopes });
    return { access_token: token, token_type: 'bearer', expires_in: 3600, refresh_token: randomUUID() };
  };
  const provider: OAuthServerProvider = {
    clientsStore: {
      getClient: (id) => clients.get(id),
      registerClient: (client) => {
        const full = client as OAuthClientInformationFull;
        clients.set(full.client_id, full);
        return full;
      },
    },
    authorize: async (_client, { state, redirectUri, codeChallenge }, response) => {
      const code = randomUUID();
      challenges.set(code, codeChallenge);
      const back = new URL(redirectUri);
      back.searchParams.set('code', code);
      if (state !== undefined) back.searchParams.set('state', state);
      response.redirect(back.href);
    },
    challengeForAuthorizationCode: async (_client, code) => challenges.get(code) ?? '',
    exchangeAuthorizationCode: async (client) => issue(client, 'authorization_code', ['tools']),
    exchangeRefreshToken: async (client) => issue(client, 'refresh_token', ['tools']),
    verifyAccessToken: async (token) => {
      const found = access.get(token);
      if (!found) throw new InvalidTokenError('unknown');
      return { token, ...found, expiresAt: Date.now() / 1000 + 3600 };
    },
  };
  const app = express();
  const http = await new Promise<Server>((listening) => {
    const server = app.listen(0, '127.0.0.1', () => listening(server));
  });
  const address = `localhost:${(http.address() as AddressInfo).port}`;
  const url = new URL(`http://${address}/mcp`);
  const options = { provider, issuerUrl: new URL(url.origin), resourceServerUrl: url, scopesSupported: ['tools'] };
  // The metadata of the SDK for Python, which requires the client id in the form, too.
  app.get('/.well-known/oauth-authorization-server', (_request, response) => {
    const methods = ['client_secret_post', 'client_secret_basic'];
    response.json({ ...createOAuthMetadata(options), token_endpoint_auth_methods_supported: methods });
  });
  app.use(mcpAuthRouter(options));
  const bearer = requireBearerAuth({
    verifier: provider,
    requiredScopes: ['tools'],
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(url),
  });
  app.all('/mcp', bearer, express.json(), async (request, response) => {
    const server = new McpServer({ name: 'sdk', version: '1' });
    server.registerTool('search_issues', { description: 'Searches.' }, async () => ({
      content: [{ type: 'text', text: `for ${request.auth?.clientId}` }],
    }));
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    await transport.handleRequest(request, response, request.body);
  });
  afterFile(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: url.href, address, clients, given };
}
