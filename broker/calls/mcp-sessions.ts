/** MCP sessions and protocol versions of servers: per process, for one credential and one agent. */
import type { McpSession } from '../egress/mcp-protocol.ts';
import { type RecentlyUsed, recentlyUsed } from '../runtime/recently-used.ts';
import type { Credential } from './credentials.ts';

export type McpSessions = {
  find(credential: Credential, agentId: string): McpSession | undefined;
  keep(credential: Credential, agentId: string, session: McpSession | undefined): void;
};

/** Agents per credential; the least recently used one is evicted and initialises again. */
const KEPT = 1_000;

/**
 * Cache of sessions. A session belongs to one agent, because servers keep state in it. It is dropped with the opened credential, which is a
 * new object when the stored one is replaced.
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
