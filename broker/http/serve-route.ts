/** Turns a declaration into an Express handler: all steps that every route takes, in one place. */

import type { Request, Response } from 'express';
import { z } from 'zod';
import { clientKey, siteOf } from '../auth/client-address.ts';
import type { Principal } from '../auth/principal.ts';
import { holderOf as agentsHolder } from '../calls/call.ts';
import { isStopped } from '../calls/perform.ts';
import { correlationId as newCorrelationId } from '../crypto/ids.ts';
import type { CallLease } from '../egress/call-lease.ts';
import { present } from '../runtime/present.ts';
import type { Holder } from '../runtime/shared-limit.ts';
import type { Services } from '../services.ts';
import { authenticate, isStranger } from './authenticate.ts';
import { asRefusal, Refusal } from './errors.ts';
import { queryOf, readQuery } from './query.ts';
import type { LimitResult, RateLimits } from './rate-limits.ts';
import type { RefusedBearers } from './refused-bearers.ts';
import { type Reply, send } from './reply.ts';
import { bodyReader, MAX_BODY_BYTES, mayBeLong, mostBodyBytes, type ParsedBody } from './request-body.ts';
import { type Context, OWNERS, type Route } from './route.ts';
import { agentKey, logRefused, nameable, refusalReply, takeLimit, takePlace, validate } from './route-steps.ts';

const NO_QUERY = z.object({});
/** Bytes of memory that are not worth counting: all calls in flight together take few MiB of them. */
const SMALL_BODY = 16 * 1024;

/** Creates the Express handler of a route. Every answer, also to an unexpected error, is in the route's error dialect. */
export function serveRoute(route: Route, services: Services, limits: RateLimits, bearers: RefusedBearers) {
  const by = { services, bearers };
  const isOwners = OWNERS.has(route.auth);
  const isStrict = isOwners || route.path.startsWith('/owner/');
  const readBody = bodyReader(route);
  return async (request: Request, response: Response): Promise<void> => {
    const correlationId = newCorrelationId();
    const base = { services, correlationId, limits };
    /** What the parsed body takes of the memory for calls; taken over by a call, or released with the reply. */
    let lease: CallLease | undefined;
    const take = (holder: Holder): CallLease => {
      lease ??= services.budget.lease(holder);
      return lease;
    };
    let who: Principal | undefined;
    let limited: LimitResult | undefined;
    let reply: Reply;
    let endTurn: (() => void) | undefined;
    try {
      const source = clientKey(addressOf(request));
      const stranger = isStranger(route, request) ? route.strangers : undefined;
      if (stranger) limited = await takeLimit(limits, stranger, source);
      if (route.limit?.per === 'site') limited = await takeLimit(limits, route.limit, siteOf(source));
      if (route.limit?.per === 'address' && !countsFailures(route))
        limited = await takeLimit(limits, route.limit, source);
      let parsed: ParsedBody | undefined;
      // The body is read only after authentication: reading and parsing cost far more.
      const askedPlatform = async () => {
        parsed ??= await present(readBody, 'reader of bodies')(request, response);
        return parsed.ok ? parsed.platform : '';
      };
      const takeAgentsLimit = async () => {
        if (route.limit && who?.kind === 'agent' && (route.limit.per === 'agent' || route.limit.per === 'family'))
          limited = await takeLimit(limits, route.limit, agentKey(route.limit, who.agent));
      };
      const isLong = readBody !== undefined && AGENTS.has(route.auth) && mayBeLong(request);
      if (isLong) {
        // Authentication and the rate limit come first: a long body costs more than all other steps of a call.
        who = await authenticate(route, by, request, '', source);
        await takeAgentsLimit();
        const { longBodies, broker } = services;
        const holder = holderOf(who, source);
        parsed =
          route.isUnreadWhenStopped && who?.kind === 'agent' && isStopped(who, broker.clock())
            ? { ok: false, error: 'The body was not read.' }
            : await longBodies.read(holder, mostBytes(request, route), () =>
                readBody(request, response, longBodies.parsing(holder, take(holder))),
              );
      }
      const facts = route.factsOf?.(request) ?? route.facts ?? (readBody ? askedPlatform : '');
      who = await authenticate(route, by, request, facts, source);
      if (route.concurrency) await enter(base, route, request, response, { source, who });
      if (!isLong) await takeAgentsLimit();
      if (route.inTurn && mayBeLong(request)) endTurn = await takeTurn(services, who);
      if (readBody && !parsed) {
        const { longBodies } = services;
        const holder = holderOf(who, source);
        const read = () => readBody(request, response, longBodies.parsing(holder, take(holder)));
        parsed =
          mayBeLong(request) && !endTurn
            ? await longBodies.read(holder, mostBytes(request, route), read)
            : await read();
        // Reading a body may take long, and the decision must use current facts about the caller.
        who = await authenticate(route, by, request, facts, source);
      }
      if (parsed?.ok && parsed.bytes > SMALL_BODY) take(holderOf(who, source)).count(parsed.bytes);
      const { originalUrl } = request;
      const context: Context = {
        ...base,
        who: who as Context['who'],
        body: undefined,
        params: nameable(request.params as Record<string, string>),
        // Never a getter: one in an object literal gives every object a shape of its own, and each shape keeps the
        // whole call in memory until the next full collection.
        query: (route.query || isStrict
          ? readQuery(route.query ?? NO_QUERY, originalUrl, isStrict)
          : queryOf(originalUrl)) as Context['query'],
        request,
        headers: request.headers,
        source,
        lease,
        stillMay: () =>
          authenticate(route, by, request, '', source).then(
            () => true,
            (error: unknown) => {
              if (isRefusedFor(error)) return false;
              throw error;
            },
          ),
      };
      if (isOwners) await services.ownersTurns.pacer(organisationOf(who) ?? '')();
      const refused = parsed ? await validate(route, parsed, context) : undefined;
      reply = refused ?? (await route.handle(context as never));
    } catch (error) {
      reply = refusalReply(error, route, base, who);
    } finally {
      endTurn?.();
    }
    if (reply.lease !== lease) lease?.release();
    if (countsFailures(route)) [reply, limited] = await countFailure(route, reply, base, clientKey(addressOf(request)));
    if (reply.status === 429) logRefused(limits, route, reply, who, clientKey(addressOf(request)));
    if (limited) reply.headers = { ...limited.headers, ...reply.headers };
    if (route.formatRefusal && reply.status >= 400)
      reply = await route.formatRefusal(request, reply, { services, who, correlationId });
    send(response, reply, correlationId);
  };
}

/** Whether the caller is refused, as opposed to a store or an identity provider that is unavailable. */
function isRefusedFor(error: unknown): boolean {
  const status = asRefusal(error)?.status;
  return status === 401 || status === 403;
}

/** Routes that agents may use. */
const AGENTS: ReadonlySet<Route['auth']> = new Set(['agent', 'agent_or_owner', 'anyone']);

const mostBytes = (request: Request, { maxBodyBytes = MAX_BODY_BYTES }: Route): number =>
  mostBodyBytes(request.headers, maxBodyBytes);

/** Whose a body is: of an agent's family, or of the clients of an organisation, or of none, at an address. */
function holderOf(who: Principal | undefined, source: string): Holder {
  if (who?.kind === 'agent') return agentsHolder(who);
  const organisation = organisationOf(who) ?? '';
  return { family: `${organisation} ${source}`, organisation };
}

const addressOf = (request: Request): string => request.ip ?? request.socket.remoteAddress ?? '';

const countsFailures = ({ limit }: Route): boolean => limit?.per === 'address' && limit.counts === 'failures';

/** Counts a refusing reply, and replaces it by a 429 when the limit is exceeded. */
async function countFailure(
  route: Route,
  reply: Reply,
  base: Pick<Context, 'services' | 'correlationId' | 'limits'>,
  source: string,
): Promise<[Reply, LimitResult | undefined]> {
  const failed = reply.status >= 400 && reply.status < 500;
  try {
    return [reply, await takeLimit(base.limits, present(route.limit, 'limit'), source, failed ? 1 : 0)];
  } catch (error) {
    return [failed ? refusalReply(error, route, base, undefined) : reply, undefined];
  }
}

/** Takes a slot until this answer is finished. Throws Refusal when none is free. */
async function enter(
  { limits, services }: Pick<Context, 'limits' | 'services'>,
  route: Route,
  { params }: Request,
  response: Response,
  { source, who }: { source: string; who: Principal | undefined },
): Promise<void> {
  const { perAddress, overall, perToken, perAgent } = present(route.concurrency, 'limit of streams');
  const token = `${params.token}`;
  const organisation = organisationOf(who) ?? (await route.organisationOf?.(services, token));
  takePlace(limits, route.path, { perKey: perAddress, overall }, { key: source, organisation }, response);
  if (perToken !== undefined) takePlace(limits, `${route.path} token`, { perKey: perToken }, { key: token }, response);
  if (perAgent !== undefined && who?.kind === 'agent')
    takePlace(limits, `${route.path} agent`, { perKey: perAgent }, { key: who.agent.id }, response);
}

/** Waits until the organisation may send a body of many megabytes. Throws Refusal when it takes too long. */
async function takeTurn({ longBodies }: Pick<Services, 'longBodies'>, who: Principal | undefined): Promise<() => void> {
  const end = await longBodies.turn(organisationOf(who) ?? '');
  if (end) return end;
  throw new Refusal(
    'rate_limited',
    'Other large files of this organisation, or of others on this broker, are being processed. Nothing was read or changed. Try again.',
    { headers: { 'Retry-After': '30' } },
  );
}

function organisationOf(who: Principal | undefined): string | undefined {
  if (who?.kind === 'agent') return who.agent.organisation_id;
  return who && 'organisationId' in who ? who.organisationId : undefined;
}
