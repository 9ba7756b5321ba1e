/** What a token of `/mcp` was asked for, held to what a request wants to do (RFC 6750 section 3.1, insufficient_scope). */
import { readState } from '../../mcp/tools/request-state.ts';
import { ownsHeldRead } from '../approvals/own-approvals.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { UUID_PATTERN } from '../crypto/ids.ts';
import { MCP_SCOPES, type McpScope, mcpChallenge } from '../oauth-server/metadata.ts';
import type { Services } from '../services.ts';
import type { McpMessage } from './mcp-messages.ts';

const CHANGES = new Set<unknown>(['write_platform', 'delete_platform']);
const TASKS = new Set<unknown>(['tasks/get', 'tasks/update', 'tasks/cancel']);

/** Without `mcp:read` a client is told nothing of what its agent may do, and nothing that was read. An agent's own token has every scope. */
export const mayLook = ({ access }: AgentPrincipal): boolean => access === undefined || access.scopes.has('mcp:read');

/**
 * A 403 that says which scopes it takes, when the messages want more than the client was let do; else undefined. What became of
 * a held call is for either scope, so that whoever may only change learns what became of it; of a read it is for `mcp:read`.
 */
export async function insufficientScope(
  { broker }: Services,
  who: AgentPrincipal,
  messages: readonly McpMessage[],
): Promise<Response | undefined> {
  if (who.access === undefined) return undefined;
  const { scopes } = who.access;
  const wanted = new Set(messages.map((message) => scopeOf(message, scopes)));
  if (!mayLook(who)) {
    if (await ownsHeldRead(broker, who.agent, heldCallsIn(messages))) wanted.add('mcp:read');
  }
  const missing = MCP_SCOPES.filter((scope) => wanted.has(scope) && !scopes.has(scope));
  if (missing.length === 0) return undefined;
  // What it has already is named, too: a client that asks for the named ones alone would lose the others.
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
  // What changes in what its agent may do.
  if (method === 'subscriptions/listen') return 'mcp:read';
  if (method !== 'tools/call') return undefined;
  if (params?.name === 'check_approval') return either;
  return CHANGES.has(params?.name) ? 'mcp:write' : 'mcp:read';
}

/** Ids of the held calls that the messages ask for: as tasks, by check_approval, or by resuming one. */
function heldCallsIn(messages: readonly McpMessage[]): string[] {
  const named = messages.flatMap(({ params }) => [
    params?.taskId,
    params?.arguments?.approval_id,
    typeof params?.requestState === 'string' ? readState(params.requestState).id : undefined,
  ]);
  const ids = named.filter((one): one is string => typeof one === 'string' && UUID_PATTERN.test(one));
  return ids.map((id) => id.toLowerCase());
}
