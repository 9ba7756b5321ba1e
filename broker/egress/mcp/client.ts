/**
 * A client for MCP servers on top of the guarded HTTP client. Uses stateless requests (revision 2026-07-28) when the server supports them;
 * otherwise a handshake and, if the server issues one, a session id. Protocol fallback happens only on `tools/list`: a tool call is never
 * retried.
 */
import type { Secret } from '../../crypto/secret.ts';
import type { Instant, JsonObject } from '../../policy/facts.ts';
import type { Answer } from '../buffered-exchange.ts';
import type { CallLease } from '../call-lease.ts';
import type { Outbound } from '../dispatcher.ts';
import { WHOLE_TOTAL_MS } from '../outbound-request.ts';
import { type BuiltRequest, buildRequest, type RestPlatform } from '../rest.ts';
import { unreachable } from '../unreachable.ts';
import { callTime } from './ask-again.ts';
import { mirrored, parameterHeaders } from './mirror.ts';
import {
  isInconsistentRefusal,
  isServerError,
  type McpAnswer,
  type McpSession,
  mayNeedOtherProtocol,
  NEWEST_HANDSHAKE,
  readGreeting,
  STATELESS,
  sessionHeaders,
  statelessMeta,
  wasAbandoned,
} from './protocol.ts';
import { resumeStream } from './resume.ts';
import { type RpcAnswer, readRpc, type StreamPlace, untilAnswered } from './rpc.ts';
import { followTask, isTaskOnly, wantsTasks } from './tasks.ts';

export type McpTarget = {
  /** Its base URL is the server's complete address. */
  platform: RestPlatform;
  credential: Secret;
  /** Needed for the timestamp of signatures. */
  clock: () => Instant;
  /** Calls with different keys share neither sockets nor sessions. */
  connectionKey: string;
  /** See `RequestHead`. */
  family?: string;
  lease?: CallLease;
  /** Headers of every request in addition to the protocol's own, names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** Further headers, computed for each request when it is sent, by its JSON-RPC method. */
  headersOf?: (method: string) => Readonly<Record<string, string>>;
  /** The session of an earlier call with the same credential and agent, to be resumed. */
  session: McpSession | undefined;
  /** Milliseconds for all requests together; WHOLE_TOTAL_MS by default. */
  timeoutMs?: number;
  /**
   * Idle timeout of a tool call in milliseconds; where it exceeds `timeoutMs`, also the time for the call with all requests before it. By
   * default only the total time limits it, because a tool is silent until its work is done.
   */
  idleMs?: number | undefined;
};

export type McpClient = {
  /** A page of `tools/list`; the first one negotiates the protocol. */
  list(cursor?: string): Promise<McpAnswer>;
  /**
   * Calls a tool once, without retries, or as a task that is followed until it ends when the server requires tasks. Call `list` first.
   * `meta`: members of `_meta`, computed for each request of the call: a server that demands a task gets a second one.
   */
  call(
    tool: { name: string; inputSchema?: unknown; execution?: unknown },
    args: JsonObject,
    meta: () => JsonObject,
  ): Promise<McpAnswer>;
  /** The current session, to be kept for later calls. */
  session(): McpSession | undefined;
  /** Ends the current session at the server (Streamable HTTP, Session Management), when no later call will use it. Never throws. */
  end(): Promise<void>;
};

/** Methods whose response arrives only when the tool has done its work. */
const LONG_RUNNING: ReadonlySet<string> = new Set(['tools/call', 'tasks/result']);
/** Timeout of a request that ends a call or a session, which is sent even when the call's own time has passed. */
const ENDING = { withinMs: 2_000 };
/**
 * `takesTasks`: whether a task may be returned in place of a result. `withinMs`: how long the response is waited for; by default as long as
 * the call may take. `place`: receives how far its stream was read.
 */
type Options = { takesTasks?: boolean; withinMs?: number; place?: StreamPlace };

/** Creates a client. `version`: of this program. */
export function makeMcpClient(outbound: Outbound, target: McpTarget, version: string): McpClient {
  const clientInfo = { name: 'agent-broker', version };
  const begunAt = performance.now();
  let until = begunAt + (target.timeoutMs ?? WHOLE_TOTAL_MS);
  let { session } = target;

  /** Sends one HTTP request. `rpc`: its JSON-RPC method. */
  const send = async (
    call: { method: 'POST'; body: JsonObject } | { method: 'GET' | 'DELETE' },
    rpc: string,
    headers: Record<string, string>,
    { withinMs, place, expectsAnswer }: Options & { expectsAnswer: boolean },
  ): Promise<Answer | Extract<BuiltRequest, { ok: false }>> => {
    const left = withinMs ?? until - performance.now();
    if (left <= 0) return unreachable('timeout', false, 'total');
    const built = await buildRequest(
      target.platform,
      {
        body: undefined,
        ...call,
        endpoint: { path: '/', query: '' },
        headers: { ...target.headers, ...target.headersOf?.(rpc), 'accept-encoding': 'identity', ...headers },
      },
      target.credential,
      target.clock(),
    );
    if (!built.ok) return built;
    if (rpc === 'tools/call') target.lease?.countBody(built.request.body);
    return await outbound.send({
      ...built.request,
      connectionKey: target.connectionKey,
      ...(target.family !== undefined && { family: target.family }),
      // A cancel request is also sent for a stopped call.
      ...(target.lease !== undefined && withinMs === undefined && { lease: target.lease, endsWithAccess: true }),
      totalTimeoutMs: left,
      ...((LONG_RUNNING.has(rpc) || call.method === 'GET') && { idleTimeoutMs: target.idleMs ?? left }),
      ...(expectsAnswer && { enough: untilAnswered(place) }),
    });
  };

  const post = async (
    message: JsonObject & { id?: string; method: string },
    headers: Record<string, string>,
    { takesTasks = false, ...options }: Options = {},
  ): Promise<McpAnswer> => {
    const { id } = message;
    const accept = 'application/json, text/event-stream';
    const asked = { ...options, expectsAnswer: id !== undefined };
    const answer = await send({ method: 'POST', body: message }, message.method, { accept, ...headers }, asked);
    if (!('kind' in answer)) return answer;
    if (id !== undefined || answer.kind === 'unreachable') return await readRpc(answer, id ?? '', takesTasks);
    return { kind: 'http', received: answer };
  };

  const time = callTime(() => until, target.lease);

  /** Sends a request; resumes the stream of a tool call that ends before its answer. `session`: headers of all requests of the session. */
  const postToEnd = async (
    message: JsonObject & { id: string; method: string },
    session: Record<string, string>,
    { headers = {}, ...options }: { headers?: Record<string, string> } & Options,
  ): Promise<McpAnswer> => {
    const place: StreamPlace = {};
    const first = await post(message, { ...session, ...headers }, { ...options, place });
    if (!LONG_RUNNING.has(message.method) || !('kind' in first)) return first;
    const resume = async (lastEventId: string): Promise<RpcAnswer> => {
      const own = { accept: 'text/event-stream', ...session, 'last-event-id': lastEventId };
      const answer = await send({ method: 'GET' }, 'resume', own, { place, expectsAnswer: true });
      return 'kind' in answer ? await readRpc(answer, message.id) : unreachable('bad_request', true, 'resume');
    };
    return await resumeStream(first, place, { resume, ...time });
  };

  const request = async (
    how: McpSession,
    method: string,
    params: JsonObject,
    { meta = {}, headers = {}, ...options }: { meta?: JsonObject; headers?: Record<string, string> } & Options = {},
  ): Promise<McpAnswer> => {
    const id = crypto.randomUUID();
    if (how.era === 'handshake') {
      const withMeta = Object.keys(meta).length > 0 ? { ...params, _meta: meta } : params;
      const own = sessionHeaders(how);
      const answer = await postToEnd({ jsonrpc: '2.0', id, method, params: withMeta }, own, options);
      // Servers of these revisions ignore a closed connection.
      if (method === 'tools/call' && !('task' in params) && wasAbandoned(answer))
        await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } }, own, ENDING);
      return answer;
    }
    const named = params.name ?? params.taskId;
    const name = typeof named === 'string' ? { 'mcp-name': mirrored(named) } : {};
    const _meta = { ...meta, ...statelessMeta(clientInfo, options) };
    const message = { jsonrpc: '2.0', id, method, params: { ...params, _meta } };
    const own = { 'mcp-method': method, ...name, ...headers };
    return await postToEnd(message, { 'mcp-protocol-version': STATELESS }, { ...options, headers: own });
  };

  const initialize = async (): Promise<McpSession | McpAnswer> => {
    const params = { protocolVersion: NEWEST_HANDSHAKE, capabilities: {}, clientInfo };
    const answer = await post({ jsonrpc: '2.0', id: crypto.randomUUID(), method: 'initialize', params }, {});
    if (!('kind' in answer) || answer.kind !== 'result') return answer;
    const how = readGreeting(answer);
    if ('kind' in how) return how;
    const notified = await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, sessionHeaders(how));
    return 'kind' in notified && notified.kind === 'http' && notified.received.status < 300 ? how : notified;
  };

  return {
    session: () => session,
    end: async () => {
      const ended = session;
      session = undefined;
      // A server that lets no client end a session answers 405, which changes nothing.
      if (ended?.era === 'handshake' && ended.id !== undefined)
        await send({ method: 'DELETE' }, 'end', sessionHeaders(ended), { ...ENDING, expectsAnswer: false });
    },
    list: async (cursor) => {
      const params = cursor === undefined ? {} : { cursor };
      if (session !== undefined) {
        const answer = await request(session, 'tools/list', params);
        // The session has expired, or the server was upgraded: negotiate again; after a server error, with the next call.
        const isOver = cursor === undefined && mayNeedOtherProtocol(answer);
        if (isOver || isServerError(answer)) session = undefined;
        if (!isOver) return answer;
      }
      let stateless = await request({ era: 'stateless' }, 'tools/list', params);
      // The server refused a revision that it lists as supported: retry once.
      if (isInconsistentRefusal(stateless)) stateless = await request({ era: 'stateless' }, 'tools/list', params);
      if (!mayNeedOtherProtocol(stateless)) {
        if ('kind' in stateless && stateless.kind === 'result') session = { era: 'stateless' };
        return stateless;
      }
      const initialized = await initialize();
      if (!('era' in initialized)) return initialized;
      session = initialized;
      return await request(session, 'tools/list', params);
    },
    call: async ({ name, inputSchema, execution }, args, meta) => {
      if (session === undefined) return unreachable('not_mcp', false, 'not_listed');
      const how = session;
      until = Math.max(until, begunAt + (target.idleMs ?? 0));
      const headers = parameterHeaders(inputSchema, args);
      const params = { name, arguments: args };
      const asTask = how.era === 'handshake' && how.tasks && isTaskOnly(execution);
      let answer = await request(how, 'tools/call', asTask ? { ...params, task: {} } : params, {
        meta: meta(),
        headers,
      });
      // This error means that the server did nothing yet.
      const again = how.era === 'stateless' && 'kind' in answer && wantsTasks(answer);
      if (again) answer = await request(how, 'tools/call', params, { meta: meta(), headers, takesTasks: true });
      if (!('kind' in answer) || answer.kind !== 'result' || !(asTask || answer.isTask)) return answer;
      return await followTask(answer, how.era === 'stateless' ? 'extension' : 'core', {
        ask: async (method, taskId) => {
          const withinMs = method === 'tasks/cancel' ? ENDING : {};
          const said = await request(how, method, { taskId }, { takesTasks: true, ...withinMs });
          return 'kind' in said ? said : unreachable('bad_request', true, 'task');
        },
        ...time,
      });
    },
  };
}
