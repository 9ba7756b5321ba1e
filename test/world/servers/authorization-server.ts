/** An OAuth server on loopback with an API that accepts its tokens. */
import { createServer, request as requestTo } from 'node:http';
import type { AddressInfo } from 'node:net';
import Provider from 'oidc-provider';
import { type Browser, formOf, type Visit } from '../browser/browser.ts';
import { afterFile } from '../runner/after-file.ts';
import { tokenMemory } from '../token-memory.ts';

/** An undeclared part of the package: finds an issued token. */
type Tokens = {
  AccessToken: {
    find(value: string): Promise<{ accountId: string; scope?: string; destroy(): Promise<void> } | undefined>;
  };
};
const tokensOf = (provider: unknown) => (provider as Tokens).AccessToken;

export const CLIENT_ID = 'broker-at-docs';
/** The OAuth canaries: finding one anywhere means that it leaked. */
export const CLIENT_SECRET = 'CANARY-client-0123456789-abcdefghij';

type Redirected = { clientId: string; redirectUriAllowed: (uri: string) => boolean };
const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export type AuthorizationServer = {
  issuer: string;
  /** `127.0.0.1:port`, for AGENT_BROKER_ALLOW_PRIVATE. */
  address: string;
  /** Logins whose e-mail address is marked as unverified in their ID tokens. */
  unverified: Set<string>;
  /** Received requests, as method and path. */
  seen: string[];
  /** Bodies received by the token endpoint. */
  asked: URLSearchParams[];
  /** All issued access tokens and refresh tokens. */
  given: { access: string[]; refresh: string[] };
  /** Bearers received by the API, in order. */
  bearers: string[];
  /** API requests that were answered: the owner of the token, and the query. */
  served: { who: string; query: URLSearchParams }[];
  /** Delay of the token endpoint, in milliseconds. */
  slowMs: number;
  /** Awaited when a request has arrived, before it is handled. */
  before: ((path: string) => Promise<void>) | undefined;
  /** Awaited after the token endpoint has issued tokens, before they are sent. */
  issued: (() => Promise<void>) | undefined;
  /** Overrides the answer of a path; undefined: the normal answer. */
  instead: ((path: string) => { status: number; body: string; type?: string } | undefined) | undefined;
  /** Registers the broker at this address. `localUrl`: where to fetch client ID metadata documents of that address, if it should. */
  serve(baseUrl: string, localUrl?: string): void;
  /**
   * Metadata of its MCP server at `/mcp` (RFC 9728), by path, and its 401; it trusts this server. `behind`: address of the real server, to which
   * requests with a token are forwarded. `wants`: a scope that the token needs for that.
   */
  mcp: { documents: Map<string, object>; challenge: string; behind: string | undefined; wants: string | undefined };
  /** Invalidates an access token: the API refuses it from now on. */
  end(accessToken: string): Promise<void>;
  down(): Promise<void>;
  up(): Promise<void>;
  /** Follows an address, signs in and consents. Returns the final page. */
  consent(browser: Browser, login: string, address: string): Promise<Visit>;
};

/** Starts the server; it ends with the test file. `tokenSeconds`: lifetime of its access tokens. */
export async function startAuthorizationServer({
  tokenSeconds = 600,
}: {
  tokenSeconds?: number;
} = {}): Promise<AuthorizationServer> {
  let provider: Provider | undefined;
  let answer: ReturnType<Provider['callback']> | undefined;
  const listen = (port: number) => {
    const made = createServer(async (request, response) => {
      const { pathname } = new URL(request.url!, 'http://x');
      server.seen.push(`${request.method} ${pathname}`);
      await server.before?.(pathname);
      const told = server.instead?.(pathname);
      if (told) {
        response.writeHead(told.status, { 'content-type': told.type ?? 'application/json' }).end(told.body);
        return;
      }
      const document = server.mcp.documents.get(pathname);
      if (document) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(document));
        return;
      }
      if (pathname === '/mcp') {
        const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
        server.bearers.push(bearer);
        const token = server.mcp.behind ? await tokensOf(provider).find(bearer) : undefined;
        const { wants } = server.mcp;
        if (token && wants !== undefined && !token.scope?.split(' ').includes(wants)) {
          const challenge = `Bearer error="insufficient_scope", scope="${wants}", error_description="more, please"`;
          response.writeHead(403, { 'www-authenticate': challenge, 'content-type': 'application/json' });
          response.end('{"error":"insufficient_scope"}');
          return;
        }
        if (server.mcp.behind && token) {
          const options = { method: request.method!, headers: request.headers };
          const passed = requestTo(server.mcp.behind, options, (answer) => {
            response.writeHead(answer.statusCode!, answer.headers);
            answer.pipe(response);
          });
          // A stopping broker ends its sessions, and the real server may have been closed before.
          passed.on('error', () => response.writeHead(502).end());
          return void request.pipe(passed);
        }
        response.writeHead(401, { 'www-authenticate': server.mcp.challenge }).end();
        return;
      }
      if (pathname === '/api' || pathname.startsWith('/api/')) {
        const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
        server.bearers.push(token);
        const found = await tokensOf(provider).find(token);
        if (found) server.served.push({ who: found.accountId, query: new URL(request.url!, 'http://x').searchParams });
        response.writeHead(found ? 200 : 401, { 'content-type': 'application/json' });
        response.end(JSON.stringify(found ? { who: found.accountId, echo: `Bearer ${token}` } : { error: token }));
        return;
      }
      if (!answer) return void response.writeHead(503).end();
      // The package's own pages would load fonts from the internet.
      if (pathname.startsWith('/interaction/'))
        response.setHeader('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'");
      if (pathname !== '/token') return answer(request, response);
      if (server.slowMs > 0) await new Promise((resolve) => setTimeout(resolve, server.slowMs));
      const end = response.end.bind(response);
      response.end = ((...details: Parameters<typeof end>) => {
        note(String(details[0] ?? ''));
        void (server.issued?.() ?? Promise.resolve()).then(() => end(...details));
        return response;
      }) as typeof response.end;
      answer(request, response);
    });
    return new Promise<typeof made>((resolve) => made.listen(port, '127.0.0.1', () => resolve(made)));
  };
  const note = (text: string) => {
    if (!text.startsWith('{')) return;
    const { access_token: access, refresh_token: refresh } = JSON.parse(text);
    if (access) server.given.access.push(access);
    if (refresh) server.given.refresh.push(refresh);
  };
  let http = await listen(0);
  const { port } = http.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  const server: AuthorizationServer = {
    issuer,
    address: `127.0.0.1:${port}`,
    unverified: new Set(),
    seen: [],
    asked: [],
    given: { access: [], refresh: [] },
    bearers: [],
    served: [],
    slowMs: 0,
    before: undefined,
    issued: undefined,
    instead: undefined,
    mcp: { documents: new Map(), challenge: 'Bearer', behind: undefined, wants: undefined },
    serve: (baseUrl, localUrl) => {
      provider = new Provider(issuer, {
        adapter: tokenMemory(),
        clients: [
          {
            client_id: CLIENT_ID,
            client_secret: CLIENT_SECRET,
            redirect_uris: [`${baseUrl}/console/connections/callback`],
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code'],
            token_endpoint_auth_method: 'client_secret_basic',
          },
        ],
        scopes: ['openid', 'offline_access', 'docs.read', 'docs.write'],
        claims: { openid: ['sub'], email: ['email', 'email_verified'] },
        conformIdTokenClaims: false,
        pkce: { required: () => true },
        issueRefreshToken: async () => true,
        rotateRefreshToken: () => true,
        features: {
          revocation: { enabled: true },
          registration: { enabled: true },
          ...(localUrl && { clientIdMetadataDocument: { enabled: true, ack: 'draft-02' } }),
          resourceIndicators: {
            enabled: true,
            getResourceServerInfo: () => ({ scope: 'tools.call tools.admin', accessTokenFormat: 'opaque' }),
            useGrantedResource: () => true,
          },
        },
        ttl: {
          Interaction: 600,
          Session: 600,
          Grant: 86_400,
          AccessToken: tokenSeconds,
          IdToken: 600,
          AuthorizationCode: 60,
          RefreshToken: 86_400,
        },
        ...(localUrl && {
          fetch: async (url: string | Request | URL) => await fetch(String(url).replace(baseUrl, localUrl)),
        }),
        cookies: { keys: ['a test may know it'] },
        findAccount: (_context: unknown, sub: string) => ({
          accountId: sub,
          claims: () => ({
            sub,
            email: `${sub}@docs.example`,
            ...(server.unverified.has(sub) && { email_verified: false }),
          }),
        }),
      });
      // Organisations are created later, so the client accepts the redirect URI of each.
      const { prototype } = provider.Client as unknown as { prototype: Redirected };
      const { redirectUriAllowed } = prototype;
      prototype.redirectUriAllowed = function (uri) {
        const isOfOrganisation =
          this.clientId === CLIENT_ID && uri.replace(UUID, '') === `${baseUrl}/console/connected/`;
        return isOfOrganisation || redirectUriAllowed.call(this, uri);
      };
      const { callback } = provider;
      answer = callback.call(provider);
      provider.on('grant.success', ((context: { oidc: { params: Record<string, string> } }) => {
        server.asked.push(new URLSearchParams(context.oidc.params));
      }) as never);
    },
    end: async (accessToken) => (await tokensOf(provider).find(accessToken))?.destroy(),
    down: async () => {
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
    up: async () => {
      http = await listen(port);
    },
    consent: async (browser, login, address) => {
      let visit = await browser.get(address);
      for (let step = 0; step < 4 && visit.url.startsWith(`${issuer}/interaction/`); step++) {
        const { action, fields } = formOf(visit);
        visit = await browser.post(action, { ...fields, ...(fields.prompt === 'login' && { login, password: 'x' }) });
      }
      return visit;
    },
  };
  afterFile(() => {
    http.closeAllConnections();
    http.close();
  });
  return server;
}
