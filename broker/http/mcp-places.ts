/** How much of `/mcp` one agent may have to itself. */
import type { ServerResponse } from 'node:http';
import { isRequest, type McpMessage } from './mcp-messages.ts';
import type { Limit } from './rate-limits.ts';
import type { Context } from './route.ts';
import { agentKey, takeLimit, takePlace } from './route-steps.ts';

/** Of messages: a list is many at once, and no cheaper than one after the other. */
export const MCP_LIMIT: Limit = { name: 'mcp', perMinute: 600, per: 'family' };

/** Requests of one agent that may be under way at once: each may wait for a person. */
const MOST_OPEN = 32;

/**
 * Bodies of one agent that may be on their way at once, whatever they turn out to hold. So each request that waits can be cancelled
 * by a notification beside it, all of them at the same moment, too.
 */
export const MOST_BODIES = 2 * MOST_OPEN;

/**
 * Takes a place for these messages, for as long as their answer is under way. Throws Refusal when all are taken. Messages that
 * nobody answers never wait, and need none.
 */
export function takeOpenPlace(
  { limits, who }: Context<'mcp_client'>,
  messages: readonly McpMessage[],
  response: ServerResponse,
): void {
  if (!messages.some(isRequest)) return;
  takePlace(limits, '/mcp open', { perAddress: MOST_OPEN, inAll: Infinity }, who.agent.id, response);
}

/** Counts the messages beyond the first one, which the route has counted. Throws Refusal when they are too many. */
export async function countMessages(
  { limits, who }: Context<'mcp_client'>,
  messages: readonly McpMessage[],
): Promise<void> {
  if (messages.length > 1) await takeLimit(limits, MCP_LIMIT, agentKey(MCP_LIMIT, who.agent), messages.length - 1);
}
