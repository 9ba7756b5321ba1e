/**
 * notifications/cancelled over HTTP. Clients that shake hands send it as a request of its own, which may come to another
 * replica than the one that waits; those of 2026-07-28 end the stream of the request instead.
 */
import type { Governor } from '../calls/governor.ts';
import type { AgentPrincipal } from '../identity/principal.ts';
import type { McpMessage } from './mcp-messages.ts';
import { type McpSession, requestName } from './mcp-session.ts';

/** Tells whoever waits for these requests of this session, here or elsewhere, that nobody wants their answers any more. */
export async function cancelRequests(
  { broker, changes }: Governor,
  { agent }: AgentPrincipal,
  session: McpSession,
  messages: readonly McpMessage[],
): Promise<void> {
  for (const { method, params } of messages) {
    if (method !== 'notifications/cancelled' || params?.requestId === undefined) continue;
    const ref = { organisation_id: agent.organisation_id, id: requestName(agent.id, session, params.requestId) };
    await changes.announce(broker.store.db, ref);
    changes.tell(ref);
  }
}

/** Calls `cancelled` when one of these requests is; until `over`. */
export function whenCancelled(
  { changes }: Governor,
  { agent }: AgentPrincipal,
  session: McpSession,
  messages: readonly McpMessage[],
  over: AbortSignal,
  cancelled: () => void,
): void {
  for (const { method, id } of messages) {
    if (method !== 'tools/call') continue;
    const watch = changes.watch(requestName(agent.id, session, id));
    over.addEventListener('abort', watch.end, { once: true });
    if (over.aborted) watch.end();
    void watch.news(LONGER_THAN_ANY_MS).then(() => {
      if (!watch.over()) cancelled();
    });
  }
}

/** A request is over before. */
const LONGER_THAN_ANY_MS = 24 * 3600 * 1000;
