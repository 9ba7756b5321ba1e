/** What a token of `/mcp` was asked for, held to what a request wants to do (RFC 6750 section 3.1, insufficient_scope). */
import { MCP_SCOPES, type McpScope, mcpChallenge } from '../authorization/metadata.ts';
import type { Broker } from '../broker.ts';
import type { McpMessage } from './mcp-messages.ts';

const CHANGES = new Set<unknown>(['write_platform', 'delete_platform']);

/**
 * A 403 that says which scopes it takes, when the tools that the messages call need more than `scopes`; else undefined.
 */
export function insufficientScope(
  broker: Pick<Broker, 'baseUrl'>,
  scopes: ReadonlySet<string>,
  messages: readonly McpMessage[],
): Response | undefined {
  const wanted = new Set(messages.map(scopeOf).filter((one) => one !== undefined));
  const missing = [...wanted].filter((scope) => !scopes.has(scope));
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

function scopeOf({ method, params }: McpMessage): McpScope | undefined {
  if (method !== 'tools/call') return undefined;
  return CHANGES.has(params?.name) ? 'mcp:write' : 'mcp:read';
}
