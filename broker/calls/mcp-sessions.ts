/** How each MCP server is spoken to, as found out: in this process, for one credential and one agent. */
import type { McpSession } from '../egress/mcp-protocol.ts';
import { type RecentlyUsed, recentlyUsed } from '../runtime/recently-used.ts';
import type { Credential } from './credentials.ts';

export type McpSessions = {
  find(credential: Credential, agentId: string): McpSession | undefined;
  keep(credential: Credential, agentId: string, session: McpSession | undefined): void;
};

/** Agents of one credential; whoever was longest without a call shakes hands again. */
const KEPT = 1_000;

/**
 * A session is an agent's own: servers keep things in it. It goes with the opened credential, which is another object as
 * soon as the stored one is replaced.
 */
export function mcpSessions(): McpSessions {
  const kept = new WeakMap<Credential, RecentlyUsed<McpSession>>();
  return {
    find: (credential, agentId) => kept.get(credential)?.get(agentId),
    keep: (credential, agentId, session) => {
      const mine = kept.get(credential) ?? recentlyUsed<McpSession>(KEPT);
      kept.set(credential, mine);
      if (session === undefined) mine.delete(agentId);
      else mine.set(agentId, session);
    },
  };
}
