/** Stored answers that are handed out later than their call was made: of an approved call, or of a call with an Idempotency-Key. */
import { readFlags } from '../audit/audit-flags.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import { type AccessEnded, credentialEnded } from '../policy/access-ended.ts';
import type { Facts } from '../policy/facts.ts';
import { type AuditRow, findAuditRow } from '../store/audit.ts';
import { listPersonTokens } from '../store/people.ts';
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
  const now = broker.clock();
  const ended = await whyEnded({ facts, loadFacts }, access, now);
  if (ended) return ended;
  const loaded = await loadFacts(await facts(agent.agent_id, platformId, source), now);
  return await personEnded(broker, loaded.facts, row);
}

/**
 * Returns why the agent may not get the answer to an earlier call for a person: the person has disconnected. Undefined: they have not, or the call was for
 * nobody, or its audit row is gone.
 *
 * @param found the audit row of the call, or its id
 */
export async function personEnded(
  { store }: Pick<Broker, 'store'>,
  { agent, platform }: Facts,
  found: AuditRow | string,
): Promise<AccessEnded | undefined> {
  if (!platform?.perPerson) return undefined;
  const row = typeof found === 'string' ? await findAuditRow(store.db, agent.organisationId, found) : found;
  const personId = row && readFlags(row).caller?.person_id;
  if (personId === undefined || row?.connection_id == null) return undefined;
  const { organisationId: organisation_id } = agent;
  const of = {
    organisation_id,
    platform_id: platform.platformId,
    connection_id: row.connection_id,
    person_id: personId,
  };
  const given = await listPersonTokens(store.db, of);
  if (given.some(({ standing }) => standing === 'kept')) return undefined;
  return credentialEnded([{ kind: 'person_tokens', id: personId }], new Set());
}
