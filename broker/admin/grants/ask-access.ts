/** Access requests of agents to their owners (specification, Approvals and access requests). */
import { type Opened, openAccessRequest } from '../../approvals/access-requests.ts';
import type { ApprovalChanges } from '../../audit/changes.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import type { Uses } from '../../broker.ts';
import type { FactsLoader } from '../../facts/facts.ts';
import { waitsUntil } from '../../facts/waits-until.ts';
import { findOpenRequest } from '../../store/access-requests.ts';
import { type Standing, standingOf } from './access.ts';

/** `scope` undefined: the platform as a whole. `reason`: the agent's own text. */
export type RequestedAccess = { platformId: string; scope: string | undefined; reason: string | undefined };

/**
 * Opens a request, or returns the pending one for the same access; or the reason why none is needed or possible: the access exists, or no owner could
 * grant it. An open breaker of the platform does not prevent a request.
 */
export async function askAccess(
  { broker, changes, loadFacts }: Uses<'clock' | 'store'> & { changes: ApprovalChanges; loadFacts: FactsLoader },
  { agent, rows }: AgentPrincipal,
  { platformId, scope, reason }: RequestedAccess,
): Promise<Opened | Exclude<Standing, { kind: 'missing' }>> {
  const now = broker.clock();
  const asked = {
    organisationId: agent.organisation_id,
    agentUuid: agent.id,
    platformId,
    scope: scope ?? '',
  };
  const pending = await findOpenRequest(broker.store.db, asked, now);
  if (pending) return { kind: 'pending', request: pending };
  const standing = await standingOf({ broker, loadFacts }, rows, { platformId, scope }, now);
  if (standing.kind !== 'missing') return standing;
  return await openAccessRequest(broker, changes, asked, {
    reasonCode: standing.reason,
    reason: reason ?? null,
    now,
    expiresAt: waitsUntil(agent, now),
    familyRootUuid: agent.parent_id ?? agent.id,
  });
}
