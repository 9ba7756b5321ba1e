/** From a declaration to a working Express handler: the steps that every route takes, in one place. */
import type { Request, Response } from 'express';
import type { Governor } from '../calls/governor.ts';
import { AuditUnavailable } from '../calls/record.ts';
import { correlationId as newCorrelationId } from '../crypto/ids.ts';
import type { Principal } from '../identity/principal.ts';
import { authenticate, isStranger } from './authenticate.ts';
import { Refusal } from './errors.ts';
import { leaving } from './event-stream.ts';
import { type ParsedBody, parseBody } from './parsed-body.ts';
import { refusalIn } from './problem.ts';
import { queryOf, readQuery } from './query.ts';
import { clientKey, type Limit, type LimitResult, type RateLimits } from './rate-limits.ts';
import { type Reply, send } from './reply.ts';
import type { Context, Route } from './route.ts';
import { firstProblem } from './validation.ts';

/** An Express handler for a route. Every answer, also to what nobody foresaw, is in the route's error dialect. */
export function serveRoute(route: Route, governor: Governor, limits: RateLimits) {
  return async (request: Request, response: Response): Promise<void> => {
    const correlationId = newCorrelationId();
    const base = { governor, correlationId };
    let who: Principal | undefined;
    let limited: LimitResult | undefined;
    let reply: Reply;
    try {
      const source = clientKey(request.ip ?? request.socket.remoteAddress ?? '');
      const stranger = isStranger(route, request) ? route.strangers : undefined;
      if (stranger) limited = await takeLimit(limits, stranger, source);
      if (route.limit?.per === 'address') limited = await takeLimit(limits, route.limit, source);
      const parsed = route.body ? parseBody(request, route) : undefined;
      who = await authenticate(route, governor, request, route.facts ?? (parsed?.ok ? parsed.platform : ''), source);
      if (route.atOnce) enter(limits, route, request, response, source, who);
      if (route.limit && route.limit.per !== 'address' && who?.kind === 'agent')
        limited = await takeLimit(limits, route.limit, agentKey(route.limit, who.agent));
      const declared = route.query && readQuery(route.query, request.originalUrl);
      const context: Context = {
        ...base,
        who: who as Context['who'],
        body: undefined,
        params: nameable(request.params as Record<string, string>),
        get query() {
          return (declared as never) ?? queryOf(request.originalUrl);
        },
        request,
        source,
        stillMay: () =>
          authenticate(route, governor, request, '', source).then(
            () => true,
            () => false,
          ),
      };
      const refused = route.body ? await validate(route, parsed!, context) : undefined;
      reply = refused ?? (await route.handle(context as never));
    } catch (error) {
      reply = refusalReply(error, route, base, who);
    }
    if (limited) reply.headers = { ...limited.headers, ...reply.headers };
    send(response, reply, correlationId);
  };
}

/** U+0000 names nothing, and PostgreSQL takes it in no text: it becomes what every route knows for no name, the empty one. */
function nameable(params: Record<string, string>): Record<string, string> {
  for (const name in params) if (params[name]!.includes('\0')) params[name] = '';
  return params;
}

/** By its children an agent gets no more calls than it has. */
const agentKey = ({ per }: Limit, { id, parent_id }: { id: string; parent_id: string | null }): string =>
  per === 'family' ? (parent_id ?? id) : id;

async function takeLimit(limits: RateLimits, limit: Limit, key: string): Promise<LimitResult> {
  const result = await limits.take(limit, key);
  if (!result.allowed)
    throw new Refusal('rate_limited', `At most ${limit.perMinute} requests a minute here. Wait, then try again.`, {
      headers: { ...result.headers, 'Retry-After': String(result.retryAfterSeconds) },
    });
  return result;
}

/** Takes a place for as long as this answer is under way. */
function enter(
  limits: RateLimits,
  route: Route,
  { params }: Request,
  response: Response,
  source: string,
  who: Principal | undefined,
): void {
  const { perToken, perAgent, ...atOnce } = route.atOnce!;
  const places = [() => limits.enter(route.path, atOnce, source)];
  if (perToken !== undefined)
    places.push(() =>
      limits.enter(`${route.path} token`, { perAddress: perToken, inAll: Infinity }, `${params.token}`),
    );
  if (perAgent !== undefined && who?.kind === 'agent')
    places.push(() => limits.enter(`${route.path} agent`, { perAddress: perAgent, inAll: Infinity }, who.agent.id));
  for (const take of places) {
    const leave = take();
    if (!leave)
      throw new Refusal('too_many_streams', 'Too many listen already: close some, then try again.', {
        headers: { 'Retry-After': '30' },
      });
    leaving(response, leave);
  }
}

/** Puts the body into the context. Answers a reply when it is not what the route takes. */
async function validate(route: Route, parsed: ParsedBody, context: Context): Promise<Reply | undefined> {
  const result = parsed.ok ? route.body!.safeParse(parsed.value) : undefined;
  if (result?.success) {
    context.body = result.data;
    return undefined;
  }
  const detail = result ? firstProblem(result.error!) : (parsed as { error: string }).error;
  if (!route.onMalformed) throw new Refusal('invalid_request', detail);
  return await route.onMalformed(context as never, {
    body: parsed.ok ? parsed.value : undefined,
    detail,
    ...(result && { issues: result.error!.issues }),
  });
}

/** Turns whatever was thrown into an answer. What nobody foresaw tells its correlation id and nothing else. */
function refusalReply(
  error: unknown,
  route: Route,
  base: Pick<Context, 'governor' | 'correlationId'>,
  who: Principal | undefined,
): Reply {
  const { log } = base.governor.broker;
  let refusal: Refusal;
  if (error instanceof Refusal) refusal = error;
  else if (error instanceof AuditUnavailable) {
    log.error({ err: error.cause, correlationId: base.correlationId, sent: error.sent }, error.message);
    refusal = new Refusal(
      'audit_unavailable',
      error.sent
        ? 'The call may have been made, but its outcome could not be recorded, so it is withheld. Do not repeat it: look at the platform first.'
        : 'The decision could not be recorded, so nothing was sent. Try again shortly.',
      { headers: { 'Retry-After': '5' } },
    );
  } else {
    log.error({ err: error, correlationId: base.correlationId, path: route.path }, 'unforeseen error');
    refusal = unforeseen(error);
  }
  const hint =
    who?.kind === 'agent'
      ? {
          code: refusal.code,
          severity: refusal.status >= 500 ? ('error' as const) : ('warning' as const),
          endpoint: route.path,
        }
      : undefined;
  return refusalIn(route.dialect, refusal, base, hint);
}

/** PostgreSQL class 40: of two transactions that were in each other's way it undid this one. */
function unforeseen(error: unknown): Refusal {
  if (String((error as { code?: unknown } | undefined)?.code).startsWith('40'))
    return new Refusal('store_unavailable', 'Somebody else changed the same just then; nothing was done. Try again.', {
      headers: { 'Retry-After': '1' },
    });
  if (isStoreOutage(error))
    return new Refusal('store_unavailable', 'The store does not answer. Nothing was sent. Try again shortly.', {
      headers: { 'Retry-After': '5' },
    });
  return new Refusal('internal_error', 'Something went wrong here. The correlation id tells the operator what.');
}

/** PostgreSQL classes 08 (connection), 53 (resources), 57 (operator), Node's socket errors, SQLite's own. */
function isStoreOutage(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (
    typeof message === 'string' &&
    /timeout exceeded when trying to connect|Query read timeout|Connection terminated|is not queryable/.test(message)
  )
    return true;
  return typeof code === 'string' && /^(08|53|57)|^E(CONN|PIPE|TIMEDOUT|HOSTUNREACH|AI_AGAIN)|^ERR_SQLITE/.test(code);
}
