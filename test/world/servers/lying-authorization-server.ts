/** A hostile OAuth server, with an API, whose behaviour a test sets: it consents immediately, for anybody. */
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listenOnLoopback } from '../listen.ts';

type Answerer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export type LyingServer = {
  issuer: string;
  /** `127.0.0.1:port`, for AGENT_BROKER_ALLOW_PRIVATE. */
  address: string;
  /** Overridden answers, by path. */
  answers: Map<string, Answerer>;
  /** Changes to its metadata, to the next token answers (undefined removes a member) and to the callback. */
  metadata: Record<string, unknown>;
  token: Record<string, unknown>;
  callback: (parameters: URLSearchParams) => void;
  /** Received requests, as method and path. */
  seen: string[];
  /** Bodies received by the token endpoint. */
  asked: URLSearchParams[];
  /** Issued tokens; only the last refresh token is valid, once. */
  given: { access: string[]; refresh: string[] };
  /** Bearers that its API accepts; others get a 401. */
  good: Set<string>;
  beHonest(): void;
  /** Issues new tokens, and refuses older refresh tokens from now on. Returns the answer of the token endpoint. */
  rotate(): Record<string, unknown>;
  /** Returns the manifest's `auth` for it. */
  auth(more?: Record<string, unknown>): Record<string, unknown>;
};

export async function startLyingServer(): Promise<LyingServer> {
  let count = 0;
  let presentRefresh = '';
  // No two values share a part that is half as long.
  const mint = (what: string) =>
    `CANARY-${what}-${String(++count).padStart(6, '0')}-${randomBytes(16).toString('hex')}`;
  const http = createServer(async (request, response) => {
    const body = await text(request);
    const { pathname, searchParams } = new URL(request.url!, issuer);
    server.seen.push(`${request.method} ${pathname}`);
    if (pathname === '/token') server.asked.push(new URLSearchParams(body));
    const told = server.answers.get(pathname);
    if (told) return told(request, response, body);
    const json = (value: object, status = 200) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    switch (pathname) {
      case '/.well-known/oauth-authorization-server':
        return json({
          issuer,
          authorization_endpoint: `${issuer}/auth`,
          token_endpoint: `${issuer}/token`,
          revocation_endpoint: `${issuer}/revoke`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256'],
          authorization_response_iss_parameter_supported: true,
          ...server.metadata,
        });
      case '/auth': {
        const parameters = new URLSearchParams({ code: mint('code'), state: searchParams.get('state')!, iss: issuer });
        server.callback(parameters);
        return response.writeHead(302, { location: `${searchParams.get('redirect_uri')}?${parameters}` }).end();
      }
      case '/token': {
        const form = new URLSearchParams(body);
        if (form.get('grant_type') === 'refresh_token' && form.get('refresh_token') !== presentRefresh)
          return json({ error: 'invalid_grant', error_description: `not ${form.get('refresh_token')}` }, 400);
        return json(server.rotate());
      }
      case '/revoke':
        return response.writeHead(200).end();
      case '/api/items': {
        const bearer = request.headers.authorization?.slice('Bearer '.length) ?? '';
        return server.good.has(bearer) ? json({ items: [], echo: bearer }) : json({ error: bearer }, 401);
      }
      default:
        return json({ error: 'not_found' }, 404);
    }
  });
  const port = await listenOnLoopback(http);
  const issuer = `http://127.0.0.1:${port}`;
  const server: LyingServer = {
    issuer,
    address: `127.0.0.1:${port}`,
    answers: new Map(),
    metadata: {},
    token: {},
    callback: () => {},
    seen: [],
    asked: [],
    given: { access: [], refresh: [] },
    good: new Set(),
    beHonest: () => {
      server.answers.clear();
      server.metadata = {};
      server.token = {};
      server.callback = () => {};
    },
    rotate: () => {
      const access = mint('access');
      presentRefresh = mint('refresh');
      server.given.access.push(access);
      server.given.refresh.push(presentRefresh);
      server.good.add(access);
      return {
        access_token: access,
        refresh_token: presentRefresh,
        token_type: 'Bearer',
        expires_in: 3600,
        scope: 'items.read',
        ...server.token,
      };
    },
    auth: (more = {}) => ({ type: 'oauth2', issuer, client_id: 'broker', scopes: ['items.read'], ...more }),
  };
  return server;
}
