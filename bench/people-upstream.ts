/**
 * The platform of the soak, in a process of its own: an authorization server that accepts every sign-in immediately, whose access tokens live for
 * seconds and whose refresh tokens are valid once, and an API that returns the person of the token and counts wrong tokens.
 */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** The counters, returned at `/counts`. `refused`: expired or unknown bearer tokens. `wrong`: tokens of another person than requested. */
export type PeopleCounts = { served: number; refused: number; wrong: number; refreshed: number; badGrants: number };

const LIFE_MS = 1_000 * Number(process.env.BENCH_TOKEN_SECONDS);
const counts: PeopleCounts = { served: 0, refused: 0, wrong: 0, refreshed: 0, badGrants: 0 };
/** The person of each access token, refresh token and code. */
const access = new Map<string, { person: string; until: number }>();
const refresh = new Map<string, string>();
const codes = new Map<string, string>();

const say = (response: ServerResponse, status: number, value: object) =>
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const issuer = `http://${request.headers.host}`;
  const { pathname, searchParams } = new URL(request.url ?? '/', issuer);
  const body = await text(request);
  switch (pathname) {
    case '/.well-known/oauth-authorization-server':
      return void say(response, 200, {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        response_types_supported: ['code'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
      });
    case '/auth': {
      const code = randomUUID();
      codes.set(code, searchParams.get('person') ?? '');
      const back = new URLSearchParams({ code, state: searchParams.get('state') ?? '' });
      return void response.writeHead(302, { location: `${searchParams.get('redirect_uri')}?${back}` }).end();
    }
    case '/token':
      return void token(new URLSearchParams(body), response);
    case '/counts':
      return void say(response, 200, counts);
    default:
      return void serve(request.headers.authorization, searchParams.get('of'), response);
  }
}

function token(form: URLSearchParams, response: ServerResponse): void {
  const [held, given] =
    form.get('grant_type') === 'refresh_token' ? [refresh, form.get('refresh_token')] : [codes, form.get('code')];
  const person = held.get(given ?? '');
  held.delete(given ?? '');
  if (person === undefined) {
    counts.badGrants++;
    return void say(response, 400, { error: 'invalid_grant' });
  }
  if (held === refresh) counts.refreshed++;
  const made = { access_token: randomUUID(), refresh_token: randomUUID() };
  access.set(made.access_token, { person, until: Date.now() + LIFE_MS });
  refresh.set(made.refresh_token, person);
  say(response, 200, { ...made, token_type: 'Bearer', expires_in: LIFE_MS / 1_000 });
}

function serve(authorization: string | undefined, of: string | null, response: ServerResponse): void {
  const bearer = authorization?.slice('Bearer '.length) ?? '';
  const found = access.get(bearer);
  if (found === undefined || found.until < Date.now()) {
    counts.refused++;
    access.delete(bearer);
    return void say(response, 401, { error: 'invalid_token' });
  }
  counts.served++;
  if (found.person !== of) counts.wrong++;
  say(response, 200, { who: found.person });
}

// Deletes expired tokens, so that the memory of this process does not grow.
setInterval(() => {
  for (const [one, { until }] of access) if (until < Date.now() - 60_000) access.delete(one);
}, 10_000).unref();

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.keepAliveTimeout = 300_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
