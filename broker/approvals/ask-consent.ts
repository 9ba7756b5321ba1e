/** Finds or creates the access request for a call that needs more consent than its connection has (specification, Governed call, 409). */

import type { ApprovalChanges } from '../audit/changes.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Uses } from '../broker.ts';
import { waitsUntil } from '../facts/waits-until.ts';
import { findOpenRequest } from '../store/access-requests.ts';
import type { Action } from '../wire/action.ts';
import { openAccessRequest } from './access-requests.ts';

/**
 * Creates the request, or finds the pending one. Returns its token; no token when too many requests of the agent are open, or when the store fails:
 * the call's refusal is already recorded, and is returned in any case.
 */
export async function askConsent(
  { broker, changes }: Uses<'clock' | 'log' | 'store'> & { changes: ApprovalChanges },
  { who: { agent }, action }: { who: AgentPrincipal; action: Action },
): Promise<{ token?: string }> {
  const { reason = null } = action;
  const asked = askedFor(agent, action);
  const now = broker.clock();
  const about = {
    reasonCode: 'needs_consent' as const,
    reason,
    now,
    expiresAt: waitsUntil(agent, now),
    familyRootUuid: agent.parent_id ?? agent.id,
  };
  try {
    const opened = await openAccessRequest(broker, changes, asked, about);
    return opened.kind === 'too_many' ? {} : { token: opened.request.token };
  } catch (error) {
    broker.log.error({ err: error, agent: agent.agent_id }, 'could not create an access request for more consent');
    return {};
  }
}

/**
 * Returns the token of the pending request for the platform and scope of a call. No token when there is none, or when the store fails: the call's
 * refusal is already recorded, and is returned in any case.
 */
export async function pendingConsent(
  { broker }: Uses<'clock' | 'log' | 'store'>,
  { who: { agent }, action }: { who: AgentPrincipal; action: Action },
): Promise<{ token?: string }> {
  try {
    const pending = await findOpenRequest(broker.store.db, askedFor(agent, action), broker.clock());
    return pending ? { token: pending.token } : {};
  } catch (error) {
    broker.log.error({ err: error, agent: agent.agent_id }, 'could not look for the pending access request of a call');
    return {};
  }
}

const askedFor = (agent: AgentPrincipal['agent'], { platform: platformId, scope }: Action) => ({
  organisationId: agent.organisation_id,
  agentUuid: agent.id,
  platformId,
  scope,
});
