/** The header `X-Svc-Session`: what a child identity calls the session that it is in (specification, Authentication 4). */
import type { IncomingMessage } from 'node:http';
import { SESSION_ID } from '../auth/agent-token.ts';
import type { AgentPrincipal } from '../auth/principal.ts';

/**
 * Whoever calls, with the session of the header. Only a child has none in its token: who signs its tokens itself says there in
 * which session it is, and the header, which anything on the way could set, says nothing.
 */
export function inSession(
  who: AgentPrincipal,
  request: IncomingMessage,
): { ok: true; who: AgentPrincipal } | { ok: false; error: string } {
  const marker = request.headers['x-svc-session'];
  if (marker === undefined || who.agent.agent_type !== 'child') return { ok: true, who };
  if (typeof marker === 'string' && SESSION_ID.test(marker)) return { ok: true, who: { ...who, sessionId: marker } };
  return { ok: false, error: 'X-Svc-Session: 1 to 128 letters, digits or ._~:@/+=-, one header.' };
}
