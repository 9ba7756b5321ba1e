/**
 * Sessions of clients that shake hands (2025-11-25, Session Management): nothing is kept for one. Its id says what the client
 * declared, which later requests of that era do not, so that every replica knows it, and one that was started since.
 */
import { createHash, randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export const SESSION_HEADER = 'mcp-session-id';

const OPENS_LINKS = '.url';

/**
 * Clients, as they name themselves, that declare elicitation in URL mode and take the error -32042 for a failed tool: they
 * wait with the request open instead. Codex: seen with 0.169.
 */
const WITHOUT_LINK_ERROR: ReadonlySet<unknown> = new Set(['codex-mcp-client']);

export type McpSession = {
  id: string;
  /** The client shows a person a link when an error tells it to (elicitation in URL mode). */
  opensLinks: boolean;
};

/** A new one's id, for the parameters of `initialize`. It says what the client says of itself, and gives no right. */
export function newSession(params: unknown): string {
  const { capabilities, clientInfo } = Object(params) as {
    capabilities?: { elicitation?: { url?: unknown } };
    clientInfo?: { name?: unknown };
  };
  const opens = capabilities?.elicitation?.url !== undefined && !WITHOUT_LINK_ERROR.has(clientInfo?.name);
  return `${randomUUID()}${opens ? OPENS_LINKS : ''}`;
}

/** The one that a request names. Whatever else a client brings is taken for a name like any other. */
export function sessionOf(headers: IncomingHttpHeaders): McpSession | undefined {
  const id = headers[SESSION_HEADER];
  return typeof id === 'string' ? { id, opensLinks: id.endsWith(OPENS_LINKS) } : undefined;
}

/** One request of a client, by a name without spaces that nobody else's request has. `agentId`: the agent's UUID. */
export const requestName = (agentId: string, session: McpSession, requestId: string | number): string =>
  `mcp-request:${createHash('sha256')
    .update(JSON.stringify([agentId, session.id, requestId]))
    .digest('hex')}`;
