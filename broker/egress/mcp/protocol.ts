/** Determines from a server's answers which protocol revision it supports. */
import type { JsonObject } from '../../policy/facts.ts';
import { isHeaderValue } from '../outbound-request.ts';
import type { BuiltRequest } from '../rest.ts';
import { type Unreachable, unreachable } from '../unreachable.ts';
import type { RpcAnswer } from './rpc.ts';
import { TASKS_EXTENSION } from './tasks.ts';

export type McpAnswer = RpcAnswer | Extract<BuiltRequest, { ok: false }>;

/** The negotiated protocol: stateless, or a handshake with its version and session id. */
export type McpSession =
  | { era: 'stateless' }
  /** `tasks`: whether it accepts tool calls as tasks (2025-11-25). */
  | { era: 'handshake'; version: string; id: string | undefined; tasks: boolean };

/** The revision without a handshake. */
export const STATELESS = '2026-07-28';
/** The version proposed in a handshake. */
export const NEWEST_HANDSHAKE = '2025-11-25';
const HANDSHAKES = new Set([NEWEST_HANDSHAKE, '2025-06-18', '2025-03-26', '2024-11-05']);
const MAX_SESSION_CHARACTERS = 1_024;
/** Longest answer to `initialize`, in characters, including the server's instructions. */
const MAX_INITIALIZE_BYTES = 256 * 1024;
/** Statuses about the caller or a temporary condition: they say nothing about the supported protocol. */
const NOT_ABOUT_PROTOCOL = new Set([401, 402, 403, 407, 408, 413, 429]);

/** Whether the response may be caused by the protocol revision, so that the other one is worth trying. */
export function mayNeedOtherProtocol(answer: McpAnswer): boolean {
  if (!('kind' in answer) || (answer.kind !== 'http' && answer.kind !== 'error')) return false;
  const { status } = answer.received;
  return status < 500 && !NOT_ABOUT_PROTOCOL.has(status);
}

/** Whether the status is 500 or more; some servers answer that for a session that they have lost. */
export const isServerError = (answer: McpAnswer): boolean =>
  'kind' in answer && (answer.kind === 'http' || answer.kind === 'error') && answer.received.status >= 500;

/** Whether a server answered with an error that is neither about the caller nor a redirect. */
export function isOwnFailure(answer: McpAnswer): boolean {
  if (!('kind' in answer) || (answer.kind !== 'http' && answer.kind !== 'error')) return false;
  const { status } = answer.received;
  return !NOT_ABOUT_PROTOCOL.has(status) && !(status >= 300 && status < 400);
}

/** Whether a call was abandoned before its answer arrived: it timed out, or its agent lost its access. */
export const wasAbandoned = (answer: McpAnswer): boolean =>
  'kind' in answer &&
  answer.kind === 'unreachable' &&
  answer.sent &&
  (answer.code === 'timeout' || answer.code === 'access_ended');

/** `-32022` (unsupported revision) whose `data.supported` lists the very revision that was used. */
export function isInconsistentRefusal(answer: McpAnswer): boolean {
  if (!('kind' in answer) || answer.kind !== 'error' || answer.code !== -32_022) return false;
  if (answer.text.length > MAX_INITIALIZE_BYTES) return false;
  const { data } = JSON.parse(answer.text) as { data?: { supported?: unknown } };
  return Array.isArray(data?.supported) && data.supported.includes(STATELESS);
}

/** The members of the `initialize` result that are read. */
type Greeting = {
  protocolVersion?: unknown;
  capabilities?: { tasks?: { requests?: { tools?: { call?: unknown } } } };
};

/** Reads the session from the answer to `initialize`, or returns what is wrong with it. */
export function readGreeting({ received, text }: Extract<RpcAnswer, { kind: 'result' }>): Handshake | Unreachable {
  if (text.length > MAX_INITIALIZE_BYTES) return unreachable('not_mcp', true, 'greeting');
  const { protocolVersion, capabilities } = JSON.parse(text) as Greeting;
  if (typeof protocolVersion !== 'string' || !HANDSHAKES.has(protocolVersion))
    return unreachable('not_mcp', true, 'protocol_version');
  const id = received.headers['mcp-session-id'];
  if (id !== undefined && !isSessionId(id)) return unreachable('not_mcp', true, 'session');
  const tasks = protocolVersion === NEWEST_HANDSHAKE && capabilities?.tasks?.requests?.tools?.call !== undefined;
  return { era: 'handshake', version: protocolVersion, id, tasks };
}

type Handshake = Extract<McpSession, { era: 'handshake' }>;

/** Headers of all requests of a session. */
export const sessionHeaders = ({ version, id }: Handshake): Record<string, string> => ({
  'mcp-protocol-version': version,
  ...(id !== undefined && { 'mcp-session-id': id }),
});

/** Members of `_meta` in a request of the stateless revision. `takesTasks`: the client declares that it follows tasks. */
export const statelessMeta = (clientInfo: JsonObject, { takesTasks }: { takesTasks?: boolean }): JsonObject => ({
  'io.modelcontextprotocol/protocolVersion': STATELESS,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': takesTasks ? { extensions: { [TASKS_EXTENSION]: {} } } : {},
});

function isSessionId(text: string | string[]): text is string {
  return typeof text === 'string' && text !== '' && text.length <= MAX_SESSION_CHARACTERS && isHeaderValue(text);
}
