/** Finds the audit rows that may show who made a version of rules. */
import type { AuditRow } from './audit.ts';
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';

const REASONS = ['policy_created', 'policy_changed', 'guardrails_changed', 'governance_applied'];
/** A row's time is set before its transaction waits for its turn, the version's time within the transaction; those of a planned file are equal. */
const BEFORE_MS = 60_000;
/** Clocks of replicas differ. */
const AFTER_MS = 1_000;
const MAX = 50;

/** Returns events about changes of rules around a time (milliseconds since the epoch), newest first. */
export async function findVersionEvents(
  db: Db,
  organisationId: string,
  at: number,
): Promise<Pick<AuditRow, 'id' | 'reason' | 'flags'>[]> {
  return await db
    .selectFrom('audit_rows')
    .select(['id', 'reason', 'flags'])
    .where('organisation_id', '=', organisationId)
    .where('id', '>=', firstIdOf(at - BEFORE_MS))
    .where('id', '<', firstIdOf(at + AFTER_MS))
    .where('kind', '=', 'event')
    .where('reason', 'in', REASONS)
    .orderBy('id', 'desc')
    .limit(MAX)
    .execute();
}
