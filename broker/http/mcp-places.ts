/** How much of `/mcp` one agent may have to itself. */
import type { ServerResponse } from 'node:http';
import { isRequest, type McpMessage } from './mcp-messages.ts';
import type { Context } from './route.ts';
import { takePlace } from './route-steps.ts';

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
