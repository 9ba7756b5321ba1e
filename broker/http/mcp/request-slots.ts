/** Limits of one agent's concurrent requests and messages on `/mcp`. */
import type { ServerResponse } from 'node:http';
import { type Limit, WAITING_BYTES } from '../rate-limits.ts';
import type { Context } from '../route.ts';
import { agentKey, takeLimit, takePlace } from '../route-steps.ts';
import { isRequest, type McpMessage } from './messages.ts';

/** Counts messages: a batch costs as much as its messages sent one by one. */
export const MCP_LIMIT: Limit = { name: 'mcp', perMinute: 600, per: 'family' };

/** Limit of concurrent requests of one agent: each may wait for a person. */
const MAX_OPEN = 32;

const TOO_MANY_OPEN = `At most ${MAX_OPEN} requests of an agent are answered at the same time, and calls that wait for a person are among them. Nothing was done. Wait until one is answered, or cancel one, then retry.`;

const TOO_MANY_BYTES =
  'Too many bytes of the requests of this organisation, or of all, wait for a person or a platform. Nothing was done. Wait until some are answered, or cancel some, then retry.';

/**
 * Limit of concurrent bodies of one agent, whatever they contain: each waiting request can be cancelled by a notification beside it, even all of them
 * at the same moment.
 */
export const MAX_BODIES = 2 * MAX_OPEN;

/**
 * Takes a slot, and room for `bytes` of them, for these messages until their answer is finished. Throws Refusal when none is free. Messages without an answer never wait, and need
 * none.
 */
export function reserveRequestSlot(
  { limits, who: { agent } }: Context<'mcp_client'>,
  messages: readonly McpMessage[],
  bytes: number,
  response: ServerResponse,
): void {
  if (!messages.some(isRequest)) return;
  const holder = { key: agent.id, organisation: agent.organisation_id };
  takePlace(limits, '/mcp open', { perKey: MAX_OPEN }, holder, response, TOO_MANY_OPEN);
  takePlace(limits, '/mcp bytes', { overall: WAITING_BYTES }, { ...holder, amount: bytes }, response, TOO_MANY_BYTES);
}

/** Counts the messages beyond the first, which the route has counted already. Throws Refusal when the limit is exceeded. */
export async function countMessages(
  { limits, who }: Context<'mcp_client'>,
  messages: readonly McpMessage[],
): Promise<void> {
  if (messages.length > 1) await takeLimit(limits, MCP_LIMIT, agentKey(MCP_LIMIT, who.agent), messages.length - 1);
}
