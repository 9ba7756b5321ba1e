/** Loads the principal's current facts: the agent may have been suspended or revoked, or have lost its grant. */
import type { AgentPrincipal } from '../auth/principal.ts';
import type { FactsReader } from '../store/facts-reader.ts';

export async function reloadPrincipal(
  { facts }: { facts: FactsReader },
  who: AgentPrincipal,
  platformId: string,
): Promise<AgentPrincipal> {
  const rows = await facts(who.agent.agent_id, platformId, who.source);
  const agent = rows[0] ?? { ...who.agent, status: 'revoked' as const };
  return { ...who, agent, rows: rows.length > 0 ? rows : [agent] };
}
