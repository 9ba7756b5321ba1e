/** Serves one request of an MCP client: scope checks, then the SDK's handler. */
import type { ServerResponse } from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, isJsonContentType, type Server } from '@modelcontextprotocol/server';
import { nameAcceptedTypes } from '../../../lab/mcp/accept.ts';
import { errorOf } from '../../../mcp/client/broker-error.ts';
import { bodyOf } from '../../../mcp/client/reply-body.ts';
import { permissionWatch } from '../../../mcp/tools/permission-watch.ts';
import { toolServer } from '../../../mcp/tools/tool-server.ts';
import { MAX_WAIT_MS } from '../../../mcp/tools/waiting.ts';
import { readBuild } from '../../build.ts';
import { holderOf } from '../../calls/call.ts';
import type { Caller } from '../../calls/caller.ts';
import { JSON_TYPE, type Reply } from '../reply.ts';
import type { Context } from '../route.ts';
import { refusalReply } from '../route-steps.ts';
import { cancelRequests, whenCancelled } from './cancel.ts';
import { isRequest, type McpMessage, readMcpBody } from './messages.ts';
import { watchPermissions } from './news.ts';
import { brokerPort, brokerReply } from './port.ts';
import { personKeyOf, storedRepeats } from './repeats.ts';
import { countMessages, reserveRequestSlot } from './request-slots.ts';
import { insufficientScope, mayRead } from './scopes.ts';
import { newSession, SESSION_HEADER, sessionOf } from './session.ts';

/** Passed as the body, so that the adapter does not read it again: readMcpBody did. */
const READ_ELSEWHERE = null;
/** Limit of a stream of notifications; the client opens another one. */
const MAX_REQUEST_MS = 120_000;
/** Longer than a tool waits for a person and then for a platform, for which a connection may allow up to 600 s. */
const MAX_CALL_MS = 720_000;
/**
 * Timeout for the permissions in a list: longer than a statement of the store may take. A request's server cannot send `tools/list_changed` after its
 * answer, so a client would keep a list without permissions.
 */
const LIST_TIMEOUT_MS = 20_000;
/** Time for the last messages of a stream that ends regularly. */
const CLOSE_TIMEOUT_MS = 2_000;

/** The path as it stands in the envelope of a refusal. */
const ROUTE = { path: '/mcp' };

const { version } = readBuild();

type McpContext = Context<'mcp_client', undefined>;

/** Serves the request, and stops its work when the request ends. `caller`: the person for whom all of its calls are made. */
export function serveMcp(context: McpContext, response: ServerResponse, caller: Caller | undefined): void {
  const { log } = context.services.broker;
  const onerror = (error: Error) => log.debug({ err: error }, 'MCP request refused');
  const gone = new AbortController();
  let ending: NodeJS.Timeout | undefined;
  let over: NodeJS.Timeout | undefined;
  const clear = () => {
    clearTimeout(ending);
    clearTimeout(over);
  };
  const endAfter = (ms: number) => {
    clear();
    if (response.closed) return;
    ending = setTimeout(() => void served.close(), ms);
    over = setTimeout(() => response.destroy(), ms + CLOSE_TIMEOUT_MS);
  };
  const served = serve(context, response, gone.signal, { onerror, endAfter, caller });
  const answer = toNodeHandler(served, { onerror });
  endAfter(MAX_REQUEST_MS);
  response.once('close', () => {
    clear();
    gone.abort(new Error('the client has disconnected'));
    void served.close();
  });
  void answer(context.request as Parameters<typeof answer>[0], response, READ_ELSEWHERE);
}

type Serving = { onerror: (error: Error) => void; endAfter: (ms: number) => void; caller: Caller | undefined };

/** Wraps the SDK's handler of one request with the scope checks. `close` ends work in progress, without an answer. */
function serve(
  context: McpContext,
  response: ServerResponse,
  gone: AbortSignal,
  { onerror, endAfter, caller }: Serving,
) {
  const { services, who, request } = context;
  const session = sessionOf(request.headers);
  const client = brokerPort(context, gone);
  const permissions = permissionWatch(client, () => handler.notify.toolsChanged());
  const failed = (error: unknown) => {
    const reply = brokerReply(refusalReply(error, ROUTE, context, who));
    return errorOf(reply, bodyOf(reply));
  };
  const repeats = storedRepeats(services, who, failed);
  const personKey = personKeyOf(services, who);
  const configured = caller && (() => caller);
  const host = { client, permissions, repeats, personKey, configured, failed, waitMs: MAX_WAIT_MS };
  const untold = !mayRead(who);
  const servers: Server[] = [];
  const handler = createMcpHandler(
    ({ era }) => {
      // Only clients of 2026-07-28 open a stream for server notifications; stateless servers have no other.
      const withTasks = era === 'modern';
      const tellsChanges = withTasks && !untold;
      const opensByError = era === 'legacy' && session?.opensLinks === true;
      const listPatienceMs = LIST_TIMEOUT_MS;
      const server = toolServer(host, { version, tellsChanges, withTasks, untold, opensByError, listPatienceMs });
      servers.push(server);
      return server;
    },
    { onerror, maxSubscriptions: 1 },
  );
  const close = async () => {
    await Promise.all([handler.close(), ...servers.map((server) => server.close())]);
  };
  /** Checks that run before the SDK gets these messages. Returns a refusal; throws errors that refusalReply converts. */
  const prepare = async (messages: readonly McpMessage[], bytes: number): Promise<Response | undefined> => {
    reserveRequestSlot(context, messages, bytes, response);
    await countMessages(context, messages);
    const refused = await insufficientScope(services, who, messages);
    if (refused) return refused;
    const requests = messages.filter(isRequest);
    if (requests.some(({ method }) => method === 'tools/call')) endAfter(MAX_CALL_MS);
    if (session) {
      await cancelRequests(services, who, session, messages, gone);
      whenCancelled(services, who, session, requests, gone, close);
    }
    if (requests.some(({ method }) => method === 'subscriptions/listen'))
      await watchPermissions(services, who.agent.organisation_id, permissions, { over: gone, end: close });
    return undefined;
  };
  const fetch: typeof handler.fetch = async (asked, options) => {
    nameAcceptedTypes(asked.headers);
    // The SDK refuses other content types, before it reads anything.
    if (!isJsonContentType(asked.headers.get('content-type'))) return await handler.fetch(asked, options);
    const holder = holderOf(who);
    const body = await readMcpBody(request, response, services.longBodies, holder);
    if (!body.ok) return body.answer;
    const { messages, value, bytes } = body;
    const refused = await prepare(messages, bytes).catch((error) =>
      webResponse(refusalReply(error, ROUTE, context, who)),
    );
    if (refused) return refused;
    const answer = await handler.fetch(asked, { ...options, parsedBody: value });
    const greeting = messages.find(({ method }) => method === 'initialize');
    if (greeting && answer.ok) answer.headers.set(SESSION_HEADER, newSession(greeting.params));
    return answer;
  };
  return { fetch, close };
}

function webResponse({ status, headers, body }: Reply): Response {
  const written = new Response(String(body), { status, headers: { 'Content-Type': JSON_TYPE } });
  for (const [name, value] of Object.entries(headers ?? {})) written.headers.set(name, `${value}`);
  return written;
}
