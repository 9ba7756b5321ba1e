/** After an owner consented to more at a platform, answers the access requests that waited for just that. No grant is changed. */

import { type Changing, type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { FactsLoader } from '../../facts/facts.ts';
import { decideAccessRequest, listAccessRequests, type ShownRequest } from '../../store/access-requests.ts';
import type { FactsReader } from '../../store/facts-reader.ts';
import { rollback } from '../../store/transaction.ts';
import { standingOf } from '../grants/access.ts';

/** Shown to the agent. */
const NOTE = 'The platform was connected again, with the consent that was missing.';
const MAX = 500;

/**
 * Approves the access requests for more consent on a platform whose calls would be possible now, in the name of the owner who has just connected it.
 * Requests with another obstacle stay pending. Throws AuditUnavailable.
 */
export async function settleConsent(
  services: Changing & { facts: FactsReader; loadFacts: FactsLoader },
  by: ChangingOwner,
  platformId: string,
): Promise<void> {
  const { db } = services.broker.store;
  const now = services.broker.clock();
  const pending = await listAccessRequests(db, by.owner.organisation_id, { status: 'pending', limit: MAX, now });
  for (const request of pending) {
    if (request.platform_id !== platformId || request.reason_code !== 'needs_consent') continue;
    const rows = await services.facts(request.agent_public_id, platformId, '');
    if (rows.length === 0) continue;
    const asked = { platformId, scope: request.scope === '' ? undefined : request.scope };
    const standing = await standingOf(services, rows, asked, now);
    if (standing.kind === 'usable') await settle(services, by, request, now);
  }
}

async function settle(services: Changing, by: ChangingOwner, request: ShownRequest, now: number): Promise<void> {
  const { changes } = services;
  const ref = { organisation_id: request.organisation_id, id: request.id };
  const change = {
    reason: 'access_request_approved',
    detail: NOTE,
    agent: { id: request.agent_id, agent_id: request.agent_public_id },
    platform: request.platform_id,
    ...(request.scope !== '' && { scope: request.scope }),
  };
  const done = await recordChange(services, by, change, async (tx, note, auditId) => {
    const decision = { status: 'approved' as const, note: NOTE, at: now, by: by.owner.id, granted: [], auditId };
    if (!(await decideAccessRequest(tx, ref, decision))) return rollback('decided_before');
    note({ access_request: request.id, granted: [] });
    await changes.announce(tx, ref);
    return undefined;
  });
  if (done) return;
  changes.tell(ref);
}
