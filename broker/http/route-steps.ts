/** Steps of answering a route, shared by requests over the network and those within the process. */

import type { ServerResponse } from 'node:http';
import { AuditUnavailable, MaybeRecorded } from '../audit/audit-unavailable.ts';
import type { Principal } from '../auth/principal.ts';
import { present } from '../runtime/present.ts';
import { isConflict, isStoreOutage } from '../store/store-fault.ts';
import { firstProblem } from '../wire/validation.ts';
import { onDisconnect } from './disconnects.ts';
import { asRefusal, Refusal } from './errors.ts';
import { refusalIn } from './problem.ts';
import type { Limit, LimitResult, RateLimits, SlotHolder, Slots } from './rate-limits.ts';
import type { Reply } from './reply.ts';
import type { ParsedBody } from './request-body.ts';
import type { Context, Route } from './route.ts';

/**
 * Normalises the path parameters in place. A value with U+0000 names nothing, and PostgreSQL accepts it in no text: it becomes the empty string,
 * which every route treats as unknown. A parameter that takes the rest of the path comes as its segments, which are joined.
 */
export function nameable(params: Record<string, string | string[]>): Record<string, string> {
  for (const name in params) {
    const value = params[name];
    if (Array.isArray(value)) params[name] = value.join('/');
    if (params[name]?.includes('\0')) params[name] = '';
  }
  return params as Record<string, string>;
}

/** Children share the limit of their parent, so that an agent cannot get more calls through them. */
export const agentKey = ({ per }: Limit, { id, parent_id }: { id: string; parent_id: string | null }): string =>
  per === 'family' ? (parent_id ?? id) : id;

/** Counts a request, or `count` of them. Throws Refusal, and counts none, when they would exceed the limit. */
export async function takeLimit(limits: RateLimits, limit: Limit, key: string, count = 1): Promise<LimitResult> {
  const result = await limits.take(limit, key, count);
  if (!result.allowed) {
    const what = `${'counts' in limit ? 'failed ' : ''}request${result.perMinute === 1 ? '' : 's'}`;
    throw new Refusal('rate_limited', `At most ${result.perMinute} ${what} a minute here. Wait, then try again.`, {
      headers: { ...result.headers, 'Retry-After': String(result.retryAfterSeconds) },
    });
  }
  return result;
}

/** Takes one of the slots called `name` until this answer is finished. Throws Refusal with this detail when none is free. */
export function takePlace(
  limits: RateLimits,
  name: string,
  slots: Slots,
  holder: SlotHolder,
  response: ServerResponse,
  detail = 'Too many open event streams. Close some, then retry.',
): void {
  const leave = limits.enter(name, slots, holder);
  if (!leave) throw new Refusal('too_many_streams', detail, { headers: { 'Retry-After': '30' } });
  onDisconnect(response, leave);
}

/** Counts a 429 for the log: by its code and the agent, or the address when there is no agent. */
export function logRefused(
  limits: RateLimits,
  route: Pick<Route, 'method' | 'path' | 'dialect'>,
  reply: Reply,
  who: Principal | undefined,
  source: string,
): void {
  const limit = route.dialect === 'line' ? 'git' : reply.refusal?.code;
  if (limit === undefined) return;
  limits.refused({
    limit,
    route: `${route.method} ${route.path}`,
    ...(who?.kind === 'agent' ? { agent: who.agent.agent_id, organisation: who.agent.organisation_id } : { source }),
  });
}

/** Validates the body and puts it into the context. Returns a reply when it is invalid. */
export async function validate(route: Route, parsed: ParsedBody, context: Context): Promise<Reply | undefined> {
  const result = parsed.ok ? present(route.body, 'schema').safeParse(parsed.value) : undefined;
  if (result?.success) {
    context.body = result.data;
    return undefined;
  }
  const { error: detail, code = 'invalid_request' } = parsed.ok
    ? { error: firstProblem(present(result?.error, 'problem')) }
    : parsed;
  if (!route.onMalformed || (code !== 'invalid_request' && !route.tooLargeIsMalformed))
    throw code === 'too_many_calls'
      ? new Refusal('rate_limited', detail, { headers: { 'Retry-After': '1' } })
      : new Refusal(code, detail);
  return await route.onMalformed(context as never, {
    body: parsed.ok ? parsed.value : undefined,
    code,
    detail,
    ...(result?.error && { issues: result.error.issues }),
  });
}

/** Converts anything thrown into an answer. An unexpected error reveals only its correlation id. */
export function refusalReply(
  error: unknown,
  route: Pick<Route, 'path' | 'dialect'> & Partial<Pick<Route, 'method'>>,
  base: Pick<Context, 'services' | 'correlationId'>,
  who: Principal | undefined,
): Reply {
  const refusal = refusalOf(error, route, base);
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

/** Converts anything thrown into a refusal; logs and counts it where required. */
export function refusalOf(
  error: unknown,
  route: Pick<Route, 'path'> & Partial<Pick<Route, 'method'>>,
  base: Pick<Context, 'services' | 'correlationId'>,
): Refusal {
  const { log } = base.services.broker;
  const refused = asRefusal(error);
  let refusal: Refusal;
  if (refused) refusal = refused;
  else if (error instanceof AuditUnavailable) {
    // A failing audit is logged when the failure begins; each call that may have been made is logged by itself.
    if (error.sent || !base.services.recorder.isFailing())
      log.error({ err: error.cause, correlationId: base.correlationId, sent: error.sent }, error.message);
    refusal = new Refusal(
      'audit_unavailable',
      error instanceof MaybeRecorded
        ? 'The store failed while this change was being recorded, so it is unknown whether it is in force. Check before you retry.'
        : error.sent
          ? 'The call may have been made, but its outcome could not be recorded, so it is withheld. Do not retry: check the platform first.'
          : 'The decision could not be recorded, so nothing was sent. Retry shortly.',
      // Clients that retry by themselves take Retry-After as permission, so it is omitted for a call that was sent.
      error.sent ? {} : { headers: { 'Retry-After': '5' } },
    );
  } else {
    if (isStoreOutage(error)) base.services.broker.storeOutage.failed(error);
    else if (!isConflict(error))
      log.error({ err: error, correlationId: base.correlationId, path: route.path }, 'unforeseen error');
    refusal = unforeseen(error, route.method);
  }
  const { status } = refusal;
  if (status === 503 || status === 429) base.services.broker.metrics.refused(status, refusal.code);
  return refusal;
}

function unforeseen(error: unknown, method: Route['method'] | undefined): Refusal {
  if (isConflict(error))
    return new Refusal(
      'conflict',
      'Concurrent update: another request changed this first. Nothing was changed; retry.',
      {
        headers: { 'Retry-After': '1' },
      },
    );
  if (isStoreOutage(error))
    // A GET may ask about a call that was sent, such as an approved held call.
    return new Refusal(
      'store_unavailable',
      `The store is unavailable.${method === 'GET' ? '' : ' Nothing was sent.'} Retry shortly.`,
      { headers: { 'Retry-After': '5' } },
    );
  return new Refusal('internal_error', 'Internal error. The operator finds it in the log by the correlation id.');
}
