/** The end of a child's lifetime: noticed at its next call, or when its parent needs the place (specification, Child identity). */

import type { Changing } from '../audit/record-change.ts';
import { recordChange } from '../audit/record-change.ts';
import { correlationId } from '../crypto/ids.ts';
import { revokeAgent } from '../store/revoke-agent.ts';

export type EndingChild = {
  organisation_id: string;
  id: string;
  agent_id: string;
  parent_id: string | null;
  expires_at: number | null;
};

/** Undoes the transaction of whoever was not first. */
class NotFirst extends Error {}

/**
 * Puts the end on record, once, whoever notices it: the row of the child, its parent's place, what it waits for, and an event with
 * its receipt go together. Never rejects: what cannot be recorded now is noticed again, and the child is refused by its row as it is.
 */
export async function endLifetime(services: Changing, child: EndingChild): Promise<void> {
  const { broker, changes } = services;
  const organisationId = child.organisation_id;
  const by = { owner: { id: 'time', organisation_id: organisationId }, how: 'time' as const };
  try {
    const waited = await recordChange(
      services,
      { ...by, correlationId: correlationId() },
      { reason: 'agent_expired', agent: child },
      async (db, note) => {
        const ended = await revokeAgent(db, child, 'expired', broker.clock());
        if (!ended) throw new NotFirst();
        note({ expired_at: child.expires_at === null ? null : new Date(child.expires_at).toISOString() });
        for (const ref of ended) await changes.announce(db, ref);
        return ended;
      },
    );
    for (const ref of waited) changes.tell(ref);
  } catch (error) {
    if (error instanceof NotFirst) return;
    broker.log.warn(
      { err: error, agent: child.agent_id },
      'the end of a child could not be recorded; it is refused all the same',
    );
  }
}
