/**
 * notifications/cancelled over HTTP. Clients that shake hands send it as a request of its own, which may come to another
 * replica than the one that waits; those of 2026-07-28 end the stream of the request instead.
 */

import type { AgentPrincipal } from '../auth/principal.ts';
import type { Services } from '../services.ts';
import { isRequestId, type McpMessage } from './mcp-messages.ts';
import { type McpSession, requestName } from './mcp-session.ts';

/**
 * Tells whoever waits for these requests of this session that nobody wants their answers any more: here at once, and elsewhere
 * by one notice for each, until the client that cancels is `gone` itself.
 */
export async function cancelRequests(
  { broker, changes }: Services,
  { agent }: AgentPrincipal,
  session: McpSession,
  messages: readonly McpMessage[],
  gone: AbortSignal,
): Promise<void> {
  const ids = messages
    .filter(({ method }) => method === 'notifications/cancelled')
    .map(({ params }) => params?.requestId);
  const refs = namesOf(agent.id, session, ids).map((id) => ({ organisation_id: agent.organisation_id, id }));
  for (const ref of refs) changes.tell(ref);
  for (const ref of refs) {
    if (gone.aborted) return;
    await changes.announce(broker.store.db, ref);
  }
}

/** Calls `cancelled` when one of these requests is; until `over`. */
export function whenCancelled(
  { changes }: Services,
  { agent }: AgentPrincipal,
  session: McpSession,
  messages: readonly McpMessage[],
  over: AbortSignal,
  cancelled: () => void,
): void {
  const ids = messages.filter(({ method }) => method === 'tools/call').map(({ id }) => id);
  const watches = namesOf(agent.id, session, ids).map(changes.watch);
  const end = () => {
    for (const watch of watches) watch.end();
  };
  // One listener for all of them: a signal looks through those that it has before it takes another one.
  over.addEventListener('abort', end, { once: true });
  if (over.aborted) end();
  for (const watch of watches)
    void watch.news(LONGER_THAN_ANY_MS).then(() => {
      if (!watch.over()) cancelled();
    });
}

/** Each request's name once; what can name none is left out. */
const namesOf = (agentId: string, session: McpSession, ids: readonly unknown[]): string[] => [
  ...new Set(ids.filter(isRequestId).map((id) => requestName(agentId, session, id))),
];

/** A request is over before. */
const LONGER_THAN_ANY_MS = 24 * 3600 * 1000;
