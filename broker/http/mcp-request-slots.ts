/** Limits of one agent's concurrent requests and messages on `/mcp`. */
import type { ServerResponse } from 'node:http';
import { isRequest, type McpMessage } from './mcp-messages.ts';
import type { Limit } from './rate-limits.ts';
import type { Context } from './route.ts';
import { agentKey, takeLimit, takePlace } from './route-steps.ts';

/** Counts messages: a batch costs as much as its messages sent one by one. */
export const MCP_LIMIT: Limit = { name: 'mcp', perMinute: 600, per: 'family' };

/** Limit of concurrent requests of one agent: each may wait for a person. */
const MOST_OPEN = 32;

const TOO_MANY_OPEN = `At most ${MOST_OPEN} requests of an agent are answered at the same time, and calls that wait for a person are among them. Nothing was done. Wait until one is answered, or cancel one, then retry.`;

/**
 * Limit of concurrent bodies of one agent, whatever they contain: each waiting request can be cancelled by a notification beside it, even all of them
 * at the same moment.
 */
export const MOST_BODIES = 2 * MOST_OPEN;

/**
 * Takes a slot for these messages until their answer is finished. Throws Refusal when none is free. Messages without an answer never wait, and need
 * none.
 */
export function reserveRequestSlot(
  { limits, who }: Context<'mcp_client'>,
  messages: readonly McpMessage[],
  response: ServerResponse,
): void {
  if (!messages.some(isRequest)) return;
  takePlace(limits, '/mcp open', { perKey: MOST_OPEN }, { key: who.agent.id }, response, TOO_MANY_OPEN);
}

/** Counts the messages beyond the first, which the route has counted already. Throws Refusal when the limit is exceeded. */
export async function countMessages(
  { limits, who }: Context<'mcp_client'>,
  messages: readonly McpMessage[],
): Promise<void> {
  if (messages.length > 1) await takeLimit(limits, MCP_LIMIT, agentKey(MCP_LIMIT, who.agent), messages.length - 1);
}
