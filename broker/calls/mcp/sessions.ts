/** MCP sessions and protocol versions of servers: per process, for one server, credential and agent. */
import type { McpSession } from '../../egress/mcp/protocol.ts';
import { type RecentlyUsed, recentlyUsed } from '../../runtime/recently-used.ts';
import { withTimeout } from '../../runtime/waits.ts';
import type { Credential } from '../credentials.ts';

/** Ends one session at its server. Never throws. */
type End = () => Promise<void>;

/** `server`: its complete address. */
type Holder = { agentId: string; server: string };

export type McpSessions = {
  find(credential: Credential, holder: Holder): McpSession | undefined;
  /** `ending`: returns how to end this session when the process stops. */
  keep(credential: Credential, holder: Holder, session: McpSession | undefined, ending: () => End): void;
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
 * Cache of sessions. A session belongs to one agent, because servers keep state in it, and to one server: a platform that moves to another address keeps
 * its credentials, and must not present a session there. It is dropped with the opened credential, which is a new object when the stored one is replaced.
 */
export function mcpSessions(): McpSessions {
  const kept = new WeakMap<Credential, RecentlyUsed<McpSession>>();
  // Also sessions that are not in the cache any more: of replaced credentials, and of calls that began a session at the same time.
  const ends = new Map<McpSession, End>();
  return {
    find: (credential, holder) => kept.get(credential)?.get(keyOf(holder)),
    keep: (credential, holder, session, ending) => {
      const key = keyOf(holder);
      const mine = kept.get(credential) ?? recentlyUsed<McpSession>(CACHE_SIZE);
      kept.set(credential, mine);
      if (session === mine.get(key)) return;
      if (session === undefined) return mine.delete(key);
      mine.set(key, session);
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

const keyOf = ({ agentId, server }: Holder): string => `${agentId} ${server}`;
