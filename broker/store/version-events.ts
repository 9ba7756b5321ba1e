/** The audit rows that may say who made a version of rules. */
import type { AuditRow } from './audit.ts';
import { firstIdOf } from './audit-search.ts';
import type { Db } from './store.ts';

const REASONS = ['policy_created', 'policy_changed', 'guardrails_changed', 'governance_applied'];
/** A row's moment is taken before its transaction waits for its turn, the version's inside of it. */
const BEFORE_MS = 10_000;
const AFTER_MS = 1_000;
const MOST = 50;

/** Changes of rules on record around a moment (milliseconds since the epoch), the newest first. */
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
    .limit(MOST)
    .execute();
}
