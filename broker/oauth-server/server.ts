/** The authorization server of this process: one library instance for each signing key. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type Provider from 'oidc-provider';
import type { Broker } from '../broker.ts';
import type { Store } from '../store/store.ts';
import { setBrowserCookie } from './browser-cookie.ts';
import { MCP_SCOPES, OAUTH_PATHS } from './metadata.ts';

export type AuthorizationServer = {
  provider(): Promise<Provider>;
  /** Returns a library instance that reads and writes in a transaction; creating one takes a millisecond or two. */
  within(db: Store['db']): Promise<Provider>;
  /** Handles a request to one of the paths of the library. */
  handle(request: IncomingMessage, response: ServerResponse): void;
};

/** Returns the server. The library is loaded with the first request: most brokers have no MCP clients. */
export function makeAuthorizationServer(
  broker: Pick<Broker, 'config' | 'baseUrl' | 'clock' | 'log' | 'store' | 'keys' | 'publicOutbound'>,
): AuthorizationServer {
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
    within: async (db) => {
      const { makeProvider } = await import('./provider.ts');
      return makeProvider({ ...broker, store: { ...broker.store, db } }, broker.keys.signer('issuing', broker.clock()));
    },
    handle: (request, response) => {
      // Host and protocol come from the configuration, not from the request or a proxy.
      request.headers['x-forwarded-proto'] = protocol.slice(0, -1);
      request.headers['x-forwarded-host'] = host;
      request.url = asServed(request.url ?? '');
      if (request.url.split('?', 1)[0] === OAUTH_PATHS.authorization)
        setBrowserCookie(request, response, broker.baseUrl);
      current().then(
        ({ answer }) => answer(request, response),
        (error: unknown) => {
          broker.log.error({ err: error }, 'could not load the OAuth library');
          response.writeHead(503).end();
        },
      );
    },
  };
}

/** Allowed parameters of authorization requests. The library supports more: OpenID Connect, response modes, other flows. */
const PARAMETERS = [
  'client_id',
  'redirect_uri',
  'response_type',
  'scope',
  'state',
  'resource',
  'code_challenge',
  'code_challenge_method',
  'prompt',
];

/**
 * Normalises an authorization request. Unknown parameters are ignored (RFC 6749 section 3.1). Without a known scope the default is used,
 * which is all of them (section 3.3), because clients request scopes of their own (`claudeai`, `openid`) at any server. Every request leads to the
 * consent page, so that only `prompt=none` means something.
 */
function asServed(url: string): string {
  const mark = url.indexOf('?');
  if (mark < 0 || url.slice(0, mark) !== OAUTH_PATHS.authorization) return url;
  const parameters = new URLSearchParams(
    [...new URLSearchParams(url.slice(mark + 1))].filter(([name]) => PARAMETERS.includes(name)),
  );
  if (!(parameters.get('prompt') ?? '').split(' ').includes('none')) parameters.delete('prompt');
  // A duplicate parameter is an error that the library reports to the client.
  if (parameters.getAll('scope').length <= 1) {
    const asked = (parameters.get('scope') ?? '').split(' ').filter((scope) => MCP_SCOPES.includes(scope as never));
    parameters.set('scope', asked.length > 0 ? asked.join(' ') : MCP_SCOPES.join(' '));
  }
  return `${OAUTH_PATHS.authorization}?${parameters}`;
}
