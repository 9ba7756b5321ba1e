/**
 * A client for MCP servers on top of the guarded HTTP client. Stateless requests (revision 2026-07-28) where the server
 * supports them; otherwise a handshake and, where the server issues one, a session id. Protocol fallback happens only on
 * `tools/list`: a tool call is never retried.
 */
import type { Secret } from '../crypto/secret.ts';
import type { Instant, JsonObject } from '../policy/facts.ts';
import type { CallLease } from './call-budget.ts';
import type { Outbound } from './dispatcher.ts';
import { mirrored, parameterHeaders } from './mcp-mirror.ts';
import { type RpcAnswer, readRpc, untilAnswered } from './mcp-rpc.ts';
import { followTask, isTaskOnly, pauseOf, TASKS_EXTENSION, wantsTasks } from './mcp-tasks.ts';
import { WHOLE_TOTAL_MS } from './outbound-request.ts';
import { isHeaderValue } from './request-check.ts';
import { type BuiltRequest, buildRequest, type RestPlatform } from './rest.ts';
import { unreachable } from './unreachable.ts';

/** The negotiated protocol: stateless, or a handshake with its version and session id. */
export type McpSession =
  | { era: 'stateless' }
  /** `tasks`: whether it takes tool calls as tasks (2025-11-25). */
  | { era: 'handshake'; version: string; id: string | undefined; tasks: boolean };

export type McpTarget = {
  /** Its base URL is the server's complete address. */
  platform: RestPlatform;
  credential: Secret;
  /** Signatures have a time. */
  clock: () => Instant;
  /** Calls with different keys share neither sockets nor sessions. */
  connectionKey: string;
  /** As of any request. */
  family?: string;
  lease?: CallLease;
  /** Headers of every request in addition to the protocol's own, names in lower case. */
  headers: Readonly<Record<string, string>>;
  /** Further headers, computed for each request when it is sent, by its JSON-RPC method. */
  headersOf?: (method: string) => Readonly<Record<string, string>>;
  /** The session of an earlier call with the same credential and agent, to be resumed. */
  session: McpSession | undefined;
  /** Milliseconds of all requests together; WHOLE_TOTAL_MS unless told. */
  timeoutMs?: number;
  /**
   * Milliseconds for which a tool call may be silent, and, where that is more than `timeoutMs`, which it may take with the requests before it; as
   * long as it may take unless told: tools say nothing until they have done their work.
   */
  idleMs?: number | undefined;
};

export type McpAnswer = RpcAnswer | Extract<BuiltRequest, { ok: false }>;

export type McpClient = {
  /** A page of `tools/list`; the first one negotiates the protocol. */
  list(cursor?: string): Promise<McpAnswer>;
  /**
   * Calls a tool, once, never retried; as a task, which is followed until it ends, where the server makes the call in no other way. Call `list` first.
   * `meta`: members of `_meta`, made for each request of the call: a server that says that it wants a task gets a second one.
   */
  call(
    tool: { name: string; inputSchema?: unknown; execution?: unknown },
    args: JsonObject,
    meta: () => JsonObject,
  ): Promise<McpAnswer>;
  /** The current session, to be kept for later calls. */
  session(): McpSession | undefined;
};

const STATELESS = '2026-07-28';
const NEWEST_HANDSHAKE = '2025-11-25';
const HANDSHAKES = new Set([NEWEST_HANDSHAKE, '2025-06-18', '2025-03-26', '2024-11-05']);
/** To ask a server to cancel a task, when the time of the call may be over. */
const CANCEL_TIMEOUT_MS = 2_000;
const MOST_SESSION_CHARACTERS = 1_024;
/** Characters of the answer to `initialize`, with the server's instructions. */
const MOST_GREETING = 256 * 1024;
/** Statuses about the caller or temporary conditions, which say nothing about the supported protocol. */
const NOT_ABOUT_PROTOCOL = new Set([401, 402, 403, 407, 408, 413, 429]);

/** Whether a task may be handed out in place of a result, and for how long the response is waited for: as long as the call may take, unless told. */
type Patience = { takesTasks?: boolean; withinMs?: number };

/** Of the result of `initialize`, what is read. */
type Greeting = {
  protocolVersion?: unknown;
  capabilities?: { tasks?: { requests?: { tools?: { call?: unknown } } } };
};

/** `version`: of this program. */
export function makeMcpClient(outbound: Outbound, target: McpTarget, version: string): McpClient {
  const clientInfo = { name: 'agent-broker', version };
  const begunAt = performance.now();
  let until = begunAt + (target.timeoutMs ?? WHOLE_TOTAL_MS);
  let { session } = target;

  const post = async (
    message: JsonObject & { id?: string; method: string },
    headers: Record<string, string>,
    { takesTasks = false, withinMs }: Patience = {},
  ): Promise<McpAnswer> => {
    const left = withinMs ?? until - performance.now();
    if (left <= 0) return unreachable('timeout', false, 'total');
    const own = { accept: 'application/json, text/event-stream', 'accept-encoding': 'identity', ...headers };
    const call = { method: 'POST', endpoint: { path: '/', query: '' }, body: message } as const;
    const built = await buildRequest(
      target.platform,
      { ...call, headers: { ...target.headers, ...target.headersOf?.(message.method), ...own } },
      target.credential,
      target.clock(),
    );
    if (!built.ok) return built;
    const { id } = message;
    const answer = await outbound.send({
      ...built.request,
      connectionKey: target.connectionKey,
      ...(target.family !== undefined && { family: target.family }),
      // What tells a server to stop is sent for a call that was stopped, too.
      ...(target.lease !== undefined && withinMs === undefined && { lease: target.lease }),
      totalTimeoutMs: left,
      ...(message.method === 'tools/call' && { idleTimeoutMs: target.idleMs ?? left }),
      ...(id !== undefined && { enough: untilAnswered() }),
    });
    if (id !== undefined || answer.kind === 'unreachable') return await readRpc(answer, id ?? '', takesTasks);
    return { kind: 'http', received: answer };
  };

  const request = (
    how: McpSession,
    method: string,
    params: JsonObject,
    { meta = {}, headers = {}, ...patience }: { meta?: JsonObject; headers?: Record<string, string> } & Patience = {},
  ): Promise<McpAnswer> => {
    const id = crypto.randomUUID();
    if (how.era === 'handshake') {
      const withMeta = Object.keys(meta).length > 0 ? { ...params, _meta: meta } : params;
      const sessionId = how.id === undefined ? {} : { 'mcp-session-id': how.id };
      const own = { 'mcp-protocol-version': how.version, ...sessionId };
      return post({ jsonrpc: '2.0', id, method, params: withMeta }, own, patience);
    }
    const envelope = {
      ...meta,
      'io.modelcontextprotocol/protocolVersion': STATELESS,
      'io.modelcontextprotocol/clientInfo': clientInfo,
      'io.modelcontextprotocol/clientCapabilities': patience.takesTasks
        ? { extensions: { [TASKS_EXTENSION]: {} } }
        : {},
    };
    const named = params.name ?? params.taskId;
    const name = typeof named === 'string' ? { 'mcp-name': mirrored(named) } : {};
    const own = { 'mcp-protocol-version': STATELESS, 'mcp-method': method, ...name, ...headers };
    return post({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope } }, own, patience);
  };

  const initialize = async (): Promise<McpSession | McpAnswer> => {
    const params = { protocolVersion: NEWEST_HANDSHAKE, capabilities: {}, clientInfo };
    const answer = await post({ jsonrpc: '2.0', id: crypto.randomUUID(), method: 'initialize', params }, {});
    if (!('kind' in answer) || answer.kind !== 'result') return answer;
    if (answer.text.length > MOST_GREETING) return unreachable('not_mcp', true, 'greeting');
    const { protocolVersion, capabilities } = JSON.parse(answer.text) as Greeting;
    if (typeof protocolVersion !== 'string' || !HANDSHAKES.has(protocolVersion))
      return unreachable('not_mcp', true, 'protocol_version');
    const id = answer.received.headers['mcp-session-id'];
    if (id !== undefined && !isSessionId(id)) return unreachable('not_mcp', true, 'session');
    const tasks = protocolVersion === NEWEST_HANDSHAKE && capabilities?.tasks?.requests?.tools?.call !== undefined;
    const how: McpSession = { era: 'handshake', version: protocolVersion, id, tasks };
    const headers = { 'mcp-protocol-version': protocolVersion, ...(id && { 'mcp-session-id': id }) };
    const notified = await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
    return 'kind' in notified && notified.kind === 'http' && notified.received.status < 300 ? how : notified;
  };

  return {
    session: () => session,
    list: async (cursor) => {
      const params = cursor === undefined ? {} : { cursor };
      if (session !== undefined) {
        const answer = await request(session, 'tools/list', params);
        if (cursor !== undefined || !mayNeedOtherProtocol(answer)) return answer;
        // The session has expired, or the server was upgraded: negotiate again.
        session = undefined;
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
      // By its answer the server did nothing yet.
      const again = how.era === 'stateless' && 'kind' in answer && wantsTasks(answer);
      if (again) answer = await request(how, 'tools/call', params, { meta: meta(), headers, takesTasks: true });
      if (!('kind' in answer) || answer.kind !== 'result' || !(asTask || answer.isTask)) return answer;
      return await followTask(answer, how.era === 'stateless' ? 'extension' : 'core', {
        ask: async (method, taskId) => {
          const withinMs = method === 'tasks/cancel' ? { withinMs: CANCEL_TIMEOUT_MS } : {};
          const said = await request(how, method, { taskId }, { takesTasks: true, ...withinMs });
          return 'kind' in said ? said : unreachable('bad_request', true, 'task');
        },
        pause: (ms) => pauseOf(ms, target.lease),
        left: () => until - performance.now(),
      });
    },
  };
}

/** Whether the response may be due to the protocol, so that the other one is worth a try. */
function mayNeedOtherProtocol(answer: McpAnswer): boolean {
  if (!('kind' in answer) || (answer.kind !== 'http' && answer.kind !== 'error')) return false;
  const { status } = answer.received;
  return status < 500 && !NOT_ABOUT_PROTOCOL.has(status);
}

/** `-32022` (unsupported revision) whose `data.supported` lists the very revision that was used. */
function isInconsistentRefusal(answer: McpAnswer): boolean {
  if (!('kind' in answer) || answer.kind !== 'error' || answer.code !== -32_022) return false;
  if (answer.text.length > MOST_GREETING) return false;
  const { data } = JSON.parse(answer.text) as { data?: { supported?: unknown } };
  return Array.isArray(data?.supported) && data.supported.includes(STATELESS);
}

function isSessionId(text: string | string[]): text is string {
  return typeof text === 'string' && text !== '' && text.length <= MOST_SESSION_CHARACTERS && isHeaderValue(text);
}
