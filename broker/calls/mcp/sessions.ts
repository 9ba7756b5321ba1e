/** MCP sessions and protocol versions of servers: per process, for one credential and one agent. */
import type { McpSession } from '../../egress/mcp/protocol.ts';
import { type RecentlyUsed, recentlyUsed } from '../../runtime/recently-used.ts';
import { withTimeout } from '../../runtime/waits.ts';
import type { Credential } from '../credentials.ts';

/** Ends one session at its server. Never throws. */
type End = () => Promise<void>;

export type McpSessions = {
  find(credential: Credential, agentId: string): McpSession | undefined;
  /** `ending`: returns how to end this session when the process stops. */
  keep(credential: Credential, agentId: string, session: McpSession | undefined, ending: () => End): void;
  /** Ends all sessions at their servers, for a process that stops: its successor cannot use them. Takes less than a second. */
  end(): Promise<void>;
};

/** Agents per credential; the least recently used one is evicted and initialises again. */
const CACHE_SIZE = 1_000;
/** Sessions that are ended; of more than this many, servers have to end the oldest ones by themselves. */
const MAX_ENDED = 1_000;
const END_BATCH = 50;
const END_MS = 900;

/**
 * Cache of sessions. A session belongs to one agent, because servers keep state in it. It is dropped with the opened credential, which is a
 * new object when the stored one is replaced.
 */
export function mcpSessions(): McpSessions {
  const kept = new WeakMap<Credential, RecentlyUsed<McpSession>>();
  // Also sessions that are not in the cache any more: of replaced credentials, and of calls that began a session at the same time.
  const ends = new Map<McpSession, End>();
  return {
    find: (credential, agentId) => kept.get(credential)?.get(agentId),
    keep: (credential, agentId, session, ending) => {
      const mine = kept.get(credential) ?? recentlyUsed<McpSession>(CACHE_SIZE);
      kept.set(credential, mine);
      if (session === mine.get(agentId)) return;
      if (session === undefined) return mine.delete(agentId);
      mine.set(agentId, session);
      if (session.era !== 'handshake' || session.id === undefined) return;
      ends.set(session, ending());
      const [oldest] = ends.keys();
      if (ends.size > MAX_ENDED && oldest) ends.delete(oldest);
    },
    end: async () => {
      const left = [...ends.values()];
      ends.clear();
      const inTurn = async () => {
        for (let end = left.pop(); end; end = left.pop()) await end();
      };
      await withTimeout(Promise.all(Array.from({ length: END_BATCH }, inTurn)), END_MS);
      left.length = 0;
    },
  };
}
