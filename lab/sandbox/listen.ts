/** The HTTP server of the sandbox: authentication, routing, body, response. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { readJson } from './body.ts';
import { problem, type Reply, type Route } from './route.ts';

/** Returns the request listener of these routes. Every response is JSON or empty. */
export function listenTo(routes: readonly Route[], token: string): RequestListener {
  const table = routes.map((route) => ({ route, segments: route.path.split('/') }));
  const expected = digest(token);

  async function answer(request: IncomingMessage): Promise<Reply> {
    const refused = refuseStranger(request.headers.authorization, expected);
    if (refused) return refused;
    const [path = '', ...rest] = (request.url ?? '').split('?');
    const matches = table.flatMap(({ route, segments }) => {
      const params = paramsOf(segments, path.split('/'));
      return params ? [{ route, params }] : [];
    });
    if (matches.length === 0) {
      return problem(404, 'not_found', 'The sandbox has no such path. It has /issues, /mail, /payments and /refunds.');
    }
    // RFC 9110 section 9.3.2: HEAD is GET without the content, which node:http omits.
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    const match = matches.find(({ route }) => route.method === method);
    if (!match) return methodNotAllowed(matches.map(({ route }) => route.method));
    const query = queryOf(rest.join('?'));
    if (query === undefined) return problem(400, 'invalid_query', 'Name each query parameter once, as name=value.');
    if (!match.route.takesBody) return match.route.answer({ params: match.params, query, body: undefined });
    const body = await readJson(request);
    if ('reply' in body) return body.reply;
    return match.route.answer({ params: match.params, query, body: body.value });
  }

  return (request, response) => {
    answer(request).then(
      (reply) => send(request, response, reply),
      () => send(request, response, problem(500, 'internal_error', 'The sandbox failed on this request.')),
    );
  };
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** RFC 6750 section 3: a challenge without an error when no token was sent, `invalid_token` otherwise. */
function refuseStranger(header: string | undefined, expected: Buffer): Reply | undefined {
  if (header === undefined) {
    const challenge = { 'www-authenticate': 'Bearer realm="sandbox"' };
    return problem(401, 'missing_token', 'Send the header Authorization: Bearer <the sandbox token>.', challenge);
  }
  const presented = /^Bearer ([\x21-\x7e]+)$/i.exec(header)?.[1] ?? '';
  // Digests have the same length, so that the comparison is constant-time.
  if (timingSafeEqual(digest(presented), expected)) return undefined;
  const challenge = { 'www-authenticate': 'Bearer realm="sandbox", error="invalid_token"' };
  return problem(401, 'invalid_token', 'The bearer is not the token this sandbox was started with.', challenge);
}

function paramsOf(segments: readonly string[], given: readonly string[]): string[] | undefined {
  if (segments.length !== given.length) return undefined;
  const params: string[] = [];
  for (const [at, segment] of segments.entries()) {
    const text = given[at] ?? '';
    if (segment.startsWith('{')) params.push(text);
    else if (segment !== text) return undefined;
  }
  return params;
}

/** undefined for duplicate names, which are ambiguous. */
function queryOf(text: string): Record<string, string> | undefined {
  const pairs = [...new URLSearchParams(text)];
  if (new Set(pairs.map(([name]) => name)).size !== pairs.length) return undefined;
  return Object.fromEntries(pairs);
}

function methodNotAllowed(methods: readonly string[]): Reply {
  const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ');
  return problem(405, 'method_not_allowed', `This path takes ${allow}.`, { allow });
}

function send(request: IncomingMessage, response: ServerResponse, reply: Reply): void {
  if (response.destroyed) return;
  const headers: Record<string, string | number> = { 'cache-control': 'no-store', ...reply.headers };
  // An unread body would have to be drained before the next request: close the connection instead.
  if (!request.complete) headers.connection = 'close';
  if (reply.body === undefined) {
    response.writeHead(reply.status, headers).end();
    return;
  }
  const content = Buffer.from(JSON.stringify(reply.body));
  headers['content-type'] = 'application/json; charset=utf-8';
  headers['content-length'] = content.length;
  response.writeHead(reply.status, headers).end(content);
}
