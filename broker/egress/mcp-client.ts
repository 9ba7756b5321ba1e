/**
 * A client for MCP servers, through the guarded way out and through nothing else. Stateless requests (revision 2026-07-28)
 * where the server takes them; otherwise a handshake and, where the server wants one, a session. Nothing is asked twice
 * that could act twice: what is tried in another way is only ever the list of tools.
 */
import type { Secret } from '../crypto/secret.ts';
import type { JsonObject } from '../policy/facts.ts';
import type { Outbound } from './dispatcher.ts';
import { mirrored, parameterHeaders } from './mcp-mirror.ts';
import { type RpcAnswer, readRpc, untilAnswered } from './mcp-rpc.ts';
import { isHeaderValue } from './request-check.ts';
import { type BuiltRequest, buildRequest, type RestPlatform } from './rest.ts';
import { unreachable } from './unreachable.ts';

/** How a server is spoken to. */
export type McpManner = { era: 'stateless' } | { era: 'handshake'; version: string; session: string | undefined };

export type McpTarget = {
  /** With the server's address as its whole base URL. */
  platform: RestPlatform;
  credential: Secret;
  /** Calls with different keys share neither connections nor sessions. */
  connectionKey: string;
  /** Headers in lower case that go with every request, beside the protocol's own. */
  headers: Readonly<Record<string, string>>;
  /** Further ones, made for each request when it is sent, by its JSON-RPC method. */
  headersOf?: (method: string) => Readonly<Record<string, string>>;
  /** What was found out the last time, for the same credential and the same agent. */
  manner: McpManner | undefined;
};

export type McpAnswer = RpcAnswer | Extract<BuiltRequest, { ok: false }>;

export type McpClient = {
  /** A page of the list of tools; the first one finds out how the server is spoken to. */
  list(cursor?: string): Promise<McpAnswer>;
  /** Calls a tool, once. To be asked after `list`. `meta`: members of `_meta`. */
  call(tool: { name: string; inputSchema?: unknown }, args: JsonObject, meta: JsonObject): Promise<McpAnswer>;
  /** How the server is spoken to, as far as that is known. */
  manner(): McpManner | undefined;
};

const STATELESS = '2026-07-28';
const NEWEST_HANDSHAKE = '2025-11-25';
const HANDSHAKES = new Set([NEWEST_HANDSHAKE, '2025-06-18', '2025-03-26', '2024-11-05']);
/** All requests of one call together. */
const PATIENCE_MS = 120_000;
const MOST_SESSION_CHARACTERS = 1_024;
/** Statuses that say something of the caller or the moment, and nothing of how the server is spoken to. */
const NOT_ABOUT_MANNER = new Set([401, 402, 403, 407, 408, 413, 429]);

/** `version`: of this program. */
export function makeMcpClient(outbound: Outbound, target: McpTarget, version: string): McpClient {
  const clientInfo = { name: 'agent-broker', version };
  const until = performance.now() + PATIENCE_MS;
  let { manner } = target;

  const post = async (
    message: JsonObject & { id?: string; method: string },
    headers: Record<string, string>,
  ): Promise<McpAnswer> => {
    const left = until - performance.now();
    if (left <= 0) return unreachable('timeout', false, 'total');
    const own = { accept: 'application/json, text/event-stream', 'accept-encoding': 'identity', ...headers };
    const call = { method: 'POST', endpoint: { path: '/', query: '' }, body: message } as const;
    const built = buildRequest(
      target.platform,
      { ...call, headers: { ...target.headers, ...target.headersOf?.(message.method), ...own } },
      target.credential,
    );
    if (!built.ok) return built;
    const { id } = message;
    const answer = await outbound.send({
      ...built.request,
      connectionKey: target.connectionKey,
      totalTimeoutMs: left,
      ...(id !== undefined && { enough: untilAnswered() }),
    });
    if (id !== undefined || answer.kind === 'unreachable') return readRpc(answer, id ?? '');
    return { kind: 'http', received: answer };
  };

  const request = (
    how: McpManner,
    method: string,
    params: JsonObject,
    { meta = {}, headers = {} }: { meta?: JsonObject; headers?: Record<string, string> } = {},
  ): Promise<McpAnswer> => {
    const id = crypto.randomUUID();
    if (how.era === 'handshake') {
      const withMeta = Object.keys(meta).length > 0 ? { ...params, _meta: meta } : params;
      const session = how.session === undefined ? {} : { 'mcp-session-id': how.session };
      const own = { 'mcp-protocol-version': how.version, ...session };
      return post({ jsonrpc: '2.0', id, method, params: withMeta }, own);
    }
    const envelope = {
      ...meta,
      'io.modelcontextprotocol/protocolVersion': STATELESS,
      'io.modelcontextprotocol/clientInfo': clientInfo,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const name = typeof params.name === 'string' ? { 'mcp-name': mirrored(params.name) } : {};
    const own = { 'mcp-protocol-version': STATELESS, 'mcp-method': method, ...name, ...headers };
    return post({ jsonrpc: '2.0', id, method, params: { ...params, _meta: envelope } }, own);
  };

  const shakeHands = async (): Promise<McpManner | McpAnswer> => {
    const params = { protocolVersion: NEWEST_HANDSHAKE, capabilities: {}, clientInfo };
    const answer = await post({ jsonrpc: '2.0', id: crypto.randomUUID(), method: 'initialize', params }, {});
    if (!('kind' in answer) || answer.kind !== 'result') return answer;
    const { protocolVersion } = answer.value;
    if (typeof protocolVersion !== 'string' || !HANDSHAKES.has(protocolVersion))
      return unreachable('not_mcp', true, 'protocol_version');
    const session = answer.received.headers['mcp-session-id'];
    if (session !== undefined && !isSession(session)) return unreachable('not_mcp', true, 'session');
    const how: McpManner = { era: 'handshake', version: protocolVersion, session };
    const headers = { 'mcp-protocol-version': protocolVersion, ...(session && { 'mcp-session-id': session }) };
    const told = await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, headers);
    return 'kind' in told && told.kind === 'http' && told.received.status < 300 ? how : told;
  };

  return {
    manner: () => manner,
    list: async (cursor) => {
      const params = cursor === undefined ? {} : { cursor };
      if (manner !== undefined) {
        const answer = await request(manner, 'tools/list', params);
        if (cursor !== undefined || !isOtherwise(answer)) return answer;
        // The session is over, or the server has changed.
        manner = undefined;
      }
      let stateless = await request({ era: 'stateless' }, 'tools/list', params);
      // It speaks the revision that it has just refused: asked once more, it may.
      if (isMistaken(stateless)) stateless = await request({ era: 'stateless' }, 'tools/list', params);
      if (!isOtherwise(stateless)) {
        if ('kind' in stateless && stateless.kind === 'result') manner = { era: 'stateless' };
        return stateless;
      }
      const shaken = await shakeHands();
      if (!('era' in shaken)) return shaken;
      manner = shaken;
      return await request(manner, 'tools/list', params);
    },
    call: async ({ name, inputSchema }, args, meta) => {
      if (manner === undefined) return unreachable('not_mcp', false, 'not_listed');
      const headers = parameterHeaders(inputSchema, args);
      return await request(manner, 'tools/call', { name, arguments: args }, { meta, headers });
    },
  };
}

/** Whether a server that answers this may take the request in another manner. */
function isOtherwise(answer: McpAnswer): boolean {
  if (!('kind' in answer) || (answer.kind !== 'http' && answer.kind !== 'error')) return false;
  const { status } = answer.received;
  return status < 500 && !NOT_ABOUT_MANNER.has(status);
}

/** `-32022`: the revision is not supported. `data.supported`: those that are. */
function isMistaken(answer: McpAnswer): boolean {
  if (!('kind' in answer) || answer.kind !== 'error' || answer.code !== -32_022) return false;
  const { data } = JSON.parse(answer.text) as { data?: { supported?: unknown } };
  return Array.isArray(data?.supported) && data.supported.includes(STATELESS);
}

function isSession(text: string | string[]): text is string {
  return typeof text === 'string' && text !== '' && text.length <= MOST_SESSION_CHARACTERS && isHeaderValue(text);
}
