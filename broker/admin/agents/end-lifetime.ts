/** Ends an expired child: at its next call, or when its parent needs the slot (specification, Child identity). */

import type { Changing } from '../../audit/record-change.ts';
import { correlationId } from '../../crypto/ids.ts';
import { endAgent } from './end-agent.ts';

export type EndingChild = {
  organisation_id: string;
  id: string;
  agent_id: string;
  parent_id: string | null;
  expires_at: number | null;
};

/**
 * Ends and records the child once, however many callers detect the expiry: the child's row, its parent's slot, its pending calls and requests, and an
 * event with its receipt change together. Never rejects: if recording fails, the next detection retries, and until then the child is refused because
 * of its expiry.
 */
export async function endLifetime(services: Changing, child: EndingChild): Promise<void> {
  const owner = { id: 'time', organisation_id: child.organisation_id };
  const by = { owner, how: 'time' as const, correlationId: correlationId() };
  const facts = { expired_at: child.expires_at === null ? null : new Date(child.expires_at).toISOString() };
  try {
    await endAgent(services, by, { reason: 'agent_expired' }, child, 'expired', facts);
  } catch (error) {
    services.broker.log.warn(
      { err: error, agent: child.agent_id },
      'could not record the expiry of a child; it is refused anyway',
    );
  }
}
