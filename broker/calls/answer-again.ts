/** Stored answers that are handed out later than their call was made: of an approved call, or of a call with an Idempotency-Key. */
import type { AgentPrincipal } from '../auth/principal.ts';
import type { AccessEnded } from '../policy/access-ended.ts';
import { findAuditRow } from '../store/audit.ts';
import { whyEnded } from './access-watch.ts';
import type { CallServices } from './call-services.ts';
import { isWhole, recordedAsk } from './recorded-ask.ts';

/**
 * Notes the call again before its stored answer is handed out, when rules look back at it: those rules apply as long after the answer was
 * read as after the call itself. The call is rebuilt from its audit row, because the rules may have changed since; what the row lacks
 * counts against the agent.
 *
 * @param auditId the audit row of the call that was made
 */
export async function noteAnswerAgain(
  services: Pick<CallServices, 'broker' | 'earlierCalls' | 'facts' | 'loadFacts'>,
  who: AgentPrincipal,
  auditId: string,
): Promise<void> {
  const { broker, earlierCalls } = services;
  const now = broker.clock();
  const { guardrails, policy } = (await services.loadFacts(who.rows, now)).facts;
  if (!guardrails.readsPast && !policy?.readsPast) return;
  const row = await findAuditRow(broker.store.db, who.agent.organisation_id, auditId);
  if (!row || !isWhole(row)) return;
  const rows = await services.facts(who.agent.agent_id, row.platform_id, who.source);
  const loaded = await services.loadFacts(rows, now);
  await earlierCalls.noteAgain(loaded.facts, await recordedAsk(services, row, loaded), { auditId, now });
}

/**
 * Returns why the agent may not get the platform's answer to an earlier call, because it could not begin such a call now. Undefined: it may
 * have the answer, or there is none, or the audit row of the call is gone.
 *
 * @param named the connection that the call named; when omitted, the connection that it used
 */
export async function whyNotAgain(
  { broker, facts, loadFacts }: Pick<CallServices, 'broker' | 'facts' | 'loadFacts'>,
  { agent, source }: AgentPrincipal,
  auditId: string,
  named?: string,
): Promise<AccessEnded | undefined> {
  const row = await findAuditRow(broker.store.db, agent.organisation_id, auditId);
  if (row?.result !== 'allowed' || row.platform_id === null || row.scope === null || row.connection_id === null)
    return undefined;
  const { platform_id: platformId, scope, connection_id: through } = row;
  const access = { agentId: agent.agent_id, source, platformId, scope, connectionId: named ?? through, through };
  return await whyEnded({ facts, loadFacts }, access, broker.clock());
}
