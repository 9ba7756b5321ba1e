/** Checks the scopes of a token for `/mcp` against what a request does (RFC 6750 section 3.1, insufficient_scope). */
import { readState } from '../../../mcp/tools/request-state.ts';
import { ownsHeldRead } from '../../approvals/own-approvals.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import { UUID_PATTERN } from '../../crypto/ids.ts';
import { MCP_SCOPES, type McpScope, mcpChallenge } from '../../oauth-server/metadata.ts';
import type { Services } from '../../services.ts';
import type { McpMessage } from './messages.ts';

const CHANGES = new Set<unknown>(['write_platform', 'delete_platform']);
const TASKS = new Set<unknown>(['tasks/get', 'tasks/update', 'tasks/cancel']);

/**
 * Whether the client may read: without `mcp:read` it sees neither the agent's permissions nor results of reads. An agent's own token has every scope.
 */
export const mayRead = ({ access }: AgentPrincipal): boolean => access === undefined || access.scopes.has('mcp:read');

/**
 * Returns a 403 that names the required scopes when the messages need more than the client was given; otherwise undefined. The result of a held call
 * needs either scope, so that a client with `mcp:write` alone can read it; the result of a held read needs `mcp:read`.
 */
export async function insufficientScope(
  { broker }: Services,
  who: AgentPrincipal,
  messages: readonly McpMessage[],
): Promise<Response | undefined> {
  if (who.access === undefined) return undefined;
  const { scopes } = who.access;
  const wanted = new Set(messages.map((message) => scopeOf(message, scopes)));
  if (!mayRead(who)) {
    if (await ownsHeldRead(broker, who.agent, heldCallsIn(messages))) wanted.add('mcp:read');
  }
  const missing = MCP_SCOPES.filter((scope) => wanted.has(scope) && !scopes.has(scope));
  if (missing.length === 0) return undefined;
  // Names the scopes that the client has already, too: a client that requests only the named ones would lose the others.
  const needed = MCP_SCOPES.filter((scope) => scopes.has(scope) || missing.includes(scope));
  const detail = `This needs the scope ${missing.join(' ')}. Ask the person to connect again with it.`;
  const challenge = ['error="insufficient_scope"', ...mcpChallenge(broker, needed)].join(', ');
  return Response.json(
    { error: 'insufficient_scope', detail },
    { status: 403, headers: { 'WWW-Authenticate': `Bearer ${challenge}` } },
  );
}

function scopeOf({ method, params }: McpMessage, scopes: ReadonlySet<string>): McpScope | undefined {
  const either = MCP_SCOPES.find((scope) => scopes.has(scope)) ?? 'mcp:read';
  if (TASKS.has(method)) return either;
  // Its notifications reveal changes of the agent's permissions.
  if (method === 'subscriptions/listen') return 'mcp:read';
  if (method !== 'tools/call') return undefined;
  if (params?.name === 'check_approval') return either;
  return CHANGES.has(params?.name) ? 'mcp:write' : 'mcp:read';
}

/** Returns ids of the held calls that the messages refer to: as tasks, by check_approval, or by resuming one. */
function heldCallsIn(messages: readonly McpMessage[]): string[] {
  const named = messages.flatMap(({ params }) => [
    params?.taskId,
    params?.arguments?.approval_id,
    typeof params?.requestState === 'string' ? readState(params.requestState).id : undefined,
  ]);
  const ids = named.filter((one): one is string => typeof one === 'string' && UUID_PATTERN.test(one));
  return ids.map((id) => id.toLowerCase());
}
