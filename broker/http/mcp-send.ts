/** The agent API from within: what the tools of `/mcp` send goes through the very routes that agents call, without a network. */
import type { IncomingMessage } from 'node:http';
import type { BrokerReply, BrokerRequest, Send } from '../../mcp/client/send.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { type ParsedBody, platformOf } from './parsed-body.ts';
import { queryOf, readQuery } from './query.ts';
import type { Reply } from './reply.ts';
import { MAX_BODY_BYTES } from './request-body.ts';
import type { Context, Route } from './route.ts';
import { agentKey, logRefused, nameable, refusalReply, takeLimit, validate } from './route-steps.ts';
import { accessRequest, accessRequestStatus } from './routes/access-requests.ts';
import { actions } from './routes/actions.ts';
import { agentPermissions } from './routes/agent-permissions.ts';
import { approval } from './routes/approvals.ts';

/** What the tools need (mcp/tools/tool-client.ts), and nothing else. */
const ROUTES: readonly Route[] = [actions, approval, agentPermissions, accessRequest, accessRequestStatus];

type Outer = Context<'mcp_client', undefined>;

/**
 * Makes it for one request of a client, until `gone`: nobody is there any more who could be told. The same validation, limits, audit and answers as over the network; facts and the
 * consent are read anew each time, so that what an owner changes while a tool waits is in force at its next look.
 */
export function mcpSend(outer: Outer, gone: AbortSignal): Send {
  let first = true;
  return async (asked) => {
    const signal = asked.signal ? AbortSignal.any([asked.signal, gone]) : gone;
    signal.throwIfAborted();
    const mayStill = first || (await outer.stillMay());
    first = false;
    const answer = mayStill ? answerWithin(outer, asked, signal) : ENDED;
    // What may have an effect is not given up on; a look is.
    return asked.method === 'POST' ? await answer : await unlessAborted(answer, signal);
  };
}

const replied = (status: number, value: unknown): BrokerReply => ({
  status,
  headers: { get: () => null },
  text: JSON.stringify(value),
});

const ENDED = Promise.resolve(
  replied(401, { error: 'invalid_token', detail: 'This authorisation was revoked. Tell the person you work for.' }),
);

async function answerWithin(
  outer: Outer,
  { method, path, headers = {}, body }: BrokerRequest,
  left: AbortSignal,
): Promise<BrokerReply> {
  const found = find(method, path);
  if (!found) return replied(404, { error: 'not_found', detail: 'No such route.' });
  const { route, params } = found;
  const { services, limits, correlationId, source } = outer;
  let who: AgentPrincipal | undefined;
  let reply: Reply;
  try {
    const parsed = route.body ? parsedWithin(body ?? {}, route) : undefined;
    who = await withFacts(outer, route.facts ?? (parsed?.ok ? parsed.platform : ''));
    if (route.limit) await takeLimit(limits, route.limit, agentKey(route.limit, who.agent));
    const context: Context = {
      services,
      limits,
      correlationId,
      source,
      who,
      body: undefined,
      params: nameable(params),
      query: (route.query ? readQuery(route.query, path) : queryOf(path)) as Context['query'],
      request: within(outer.request, headers),
      stillMay: outer.stillMay,
      left,
    };
    const refused = parsed ? await validate(route, parsed, context) : undefined;
    reply = refused ?? (await route.handle(context as never));
  } catch (error) {
    reply = refusalReply(error, route, outer, who);
  }
  if (reply.status === 429) logRefused(limits, route, reply, who, source);
  const own = new Map(Object.entries(reply.headers ?? {}).map(([name, value]) => [name.toLowerCase(), `${value}`]));
  return {
    status: reply.status,
    headers: { get: (name) => own.get(name.toLowerCase()) ?? null },
    text: String(reply.body ?? ''),
  };
}

/**
 * The body as the route's reader answers it: a part of what was parsed strictly when it came (readMcpBody). What is too large
 * over the network is too large here, where a message may have more, because a call can be written with escapes.
 */
function parsedWithin(body: unknown, route: Route): ParsedBody {
  if (Buffer.byteLength(JSON.stringify(body)) > MAX_BODY_BYTES)
    return { ok: false, code: 'payload_too_large', error: 'The body is too large: 1 MiB at most.' };
  return { ok: true, value: body, platform: platformOf(body, route) };
}

function find(method: string, path: string): { route: Route; params: Record<string, string> } | undefined {
  const { pathname } = new URL(path, 'http://within');
  for (const route of ROUTES) {
    const pattern = new RegExp(`^${route.path.replaceAll(/\{(\w+)\}/g, '(?<$1>[^/]+)')}$`);
    const match = route.method === method ? pattern.exec(pathname) : null;
    if (!match) continue;
    const params = Object.entries(match.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)]);
    return { route, params: Object.fromEntries(params) };
  }
  return undefined;
}

/** The agent as it is now, with the facts about this platform. */
async function withFacts({ services, who }: Outer, platformId: string): Promise<AgentPrincipal> {
  const rows = await services.facts(who.agent.agent_id, platformId, who.source);
  return { ...who, rows, agent: rows[0] ?? who.agent };
}

/** The request that it comes with, with other headers: none of what the client sent is taken for the agent's. */
function within(request: IncomingMessage, headers: Readonly<Record<string, string>>): IncomingMessage {
  return Object.create(request, { headers: { value: headers }, rawHeaders: { value: [] } });
}

async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([answer, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    answer.catch(() => {});
  }
}
