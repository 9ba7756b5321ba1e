/** The authorization server of this process: one library instance for each key that signs. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import type { Broker } from '../broker.ts';
import { MCP_SCOPES, OAUTH_PATHS } from './metadata.ts';

export type AuthorizationServer = {
  provider(): Promise<Provider>;
  /** Answers a request to one of the paths of the library. */
  handle(request: IncomingMessage, response: ServerResponse): void;
};

/** Makes it. Nothing is made, nor its library loaded, until somebody asks: most brokers have no MCP clients. */
export function makeAuthorizationServer(broker: Broker): AuthorizationServer {
  let made: { kid: string; provider: Provider; answer: ReturnType<Provider['callback']> } | undefined;
  const current = async () => {
    const { makeProvider } = await import('./provider.ts');
    const key = broker.keys.signer('issuing', broker.clock());
    if (made?.kid !== key.kid) {
      const provider = makeProvider(broker, key);
      made = { kid: key.kid, provider, answer: provider.callback() };
    }
    return made;
  };
  const { protocol, host } = new URL(broker.baseUrl);
  return {
    provider: async () => (await current()).provider,
    handle: (request, response) => {
      // Who we are is what the configuration says, not what a request or a proxy says.
      request.headers['x-forwarded-proto'] = protocol.slice(0, -1);
      request.headers['x-forwarded-host'] = host;
      if (request.method === 'GET') request.url = withScope(request.url ?? '');
      current().then(
        ({ answer }) => answer(request, response),
        (error: unknown) => {
          broker.log.error({ err: error }, 'the OAuth library cannot be used');
          response.writeHead(503).end();
        },
      );
    },
  };
}

/**
 * RFC 6749 section 3.3: who asks for no scope that there is gets the default, which is all of them. Clients ask for the
 * scopes of their own (`claudeai`, `openid`) at any server.
 */
function withScope(url: string): string {
  const [path = '', query] = url.split('?', 2);
  if (path !== OAUTH_PATHS.authorization || query === undefined) return url;
  const parameters = new URLSearchParams(query);
  // Twice is an error of the client, which the library tells it of.
  if (parameters.getAll('scope').length > 1) return url;
  const asked = (parameters.get('scope') ?? '').split(' ').filter((scope) => MCP_SCOPES.includes(scope as never));
  parameters.set('scope', asked.length > 0 ? asked.join(' ') : MCP_SCOPES.join(' '));
  return `${path}?${parameters}`;
}
