/**
 * Handles notifications/cancelled over HTTP. Clients that send `initialize` post it as a request of its own, which may reach another replica than the
 * one that waits; clients of 2026-07-28 close the stream of the request instead.
 */

import type { AgentPrincipal } from '../../auth/principal.ts';
import type { Services } from '../../services.ts';
import { isRequestId, type McpMessage } from './messages.ts';
import { type McpSession, requestName } from './session.ts';

/**
 * Cancels these requests of this session: directly in this process, and in other replicas by one notice for each request. Stops when the cancelling
 * client is `gone` itself.
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

/**
 * Calls `cancelled` when all tool calls among these requests are cancelled, until `over` aborts: one response answers all requests of a list, so that
 * ending it for one would lose the answers of the others.
 */
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
  // One listener for all of them: adding a listener to a signal takes time proportional to those that it has.
  over.addEventListener('abort', end, { once: true });
  if (over.aborted) end();
  let left = watches.length;
  for (const watch of watches)
    void watch.news(LONGER_THAN_ANY_MS).then(() => {
      if (!watch.over() && --left === 0) cancelled();
    });
}

/** Returns the name of each request once; invalid ids are left out. */
const namesOf = (agentId: string, session: McpSession, ids: readonly unknown[]): string[] => [
  ...new Set(ids.filter(isRequestId).map((id) => requestName(agentId, session, id))),
];

/** An upper bound: no request runs that long. */
const LONGER_THAN_ANY_MS = 24 * 3600 * 1000;
