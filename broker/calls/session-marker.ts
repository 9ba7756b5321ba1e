/** `X-Svc-Session`: what a child identity calls the session that it is in (specification, Authentication 4). */
import { SESSION_ID } from '../auth/agent-token.ts';
import type { AgentPrincipal } from '../auth/principal.ts';

/**
 * Whoever calls, with the session of the marker. Only a child has none in its token: who signs its tokens itself says there in
 * which session it is, and the marker, which anything on the way could set, says nothing.
 *
 * @param marker as the caller sent it; a list where it was sent more than once
 */
export function inSession(
  who: AgentPrincipal,
  marker: string | readonly string[] | undefined,
): { ok: true; who: AgentPrincipal } | { ok: false; error: string } {
  if (marker === undefined || who.agent.agent_type !== 'child') return { ok: true, who };
  if (typeof marker === 'string' && SESSION_ID.test(marker)) return { ok: true, who: { ...who, sessionId: marker } };
  return { ok: false, error: 'X-Svc-Session: 1 to 128 letters, digits or ._~:@/+=-, one header.' };
}
