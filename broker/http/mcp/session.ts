/**
 * Sessions of clients that send `initialize` (2025-11-25, Session Management) are stateless: the session id encodes what the client declared, which
 * later requests of that protocol version omit. So every replica can read it, also one that was started later.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const SESSION_HEADER = 'mcp-session-id';

const OPENS_LINKS = '.url';

/**
 * Names of clients that declare elicitation in URL mode but treat the error -32042 as a failed tool: for these the request stays open and waits.
 * Codex: seen with 0.169.
 */
const WITHOUT_LINK_ERROR: ReadonlySet<unknown> = new Set(['codex-mcp-client']);

export type McpSession = {
  id: string;
  /** Whether the client shows a link to a person when an error asks for it (elicitation in URL mode). */
  opensLinks: boolean;
};

/** Returns the id of a new session, from the parameters of `initialize`. It reflects the client's own claims, and gives no right. */
export function newSession(params: unknown): string {
  const { capabilities, clientInfo } = Object(params) as {
    capabilities?: { elicitation?: { url?: unknown } };
    clientInfo?: { name?: unknown };
  };
  const opens = capabilities?.elicitation?.url !== undefined && !WITHOUT_LINK_ERROR.has(clientInfo?.name);
  return `${randomUUID()}${opens ? OPENS_LINKS : ''}`;
}

/** Returns the session that a request names. Unknown ids are accepted as they are. */
export function sessionOf(headers: IncomingHttpHeaders): McpSession | undefined {
  const id = headers[SESSION_HEADER];
  return typeof id === 'string' ? { id, opensLinks: id.endsWith(OPENS_LINKS) } : undefined;
}

/** Returns a globally unique name of one request of a client, without spaces. `agentId`: the agent's UUID. */
export const requestName = (agentId: string, session: McpSession, requestId: string | number): string =>
  `mcp-request:${createHash('sha256')
    .update(JSON.stringify([agentId, session.id, requestId]))
    .digest('hex')}`;
