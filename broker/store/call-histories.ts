/** Histories of held calls: the audit rows of the hold, of the approvals and the decision, and of the replay. */
import { z } from 'zod';
import type { AuditRow } from './audit.ts';
import type { Db } from './store.ts';
import { readStored } from './stored-json.ts';
import type { ApprovalTable } from './tables/approvals.ts';

export type HistoryRow = Pick<
  AuditRow,
  'id' | 'state' | 'created_at' | 'result' | 'reason' | 'upstream_status' | 'flags' | 'receipt_kid'
>;

/** A held call with those of its audit rows that exist. */
export type CallHistory = Pick<
  ApprovalTable,
  | 'id'
  | 'status'
  | 'created_at'
  | 'expires_at'
  | 'decided_at'
  | 'decided_by'
  | 'decided_how'
  | 'decided_on'
  | 'note'
  | 'corrected_by'
  | 'corrected_at'
  | 'approved_before'
> & { held?: HistoryRow | undefined; decision?: HistoryRow | undefined; made?: HistoryRow | undefined } & {
  /** The rows of the approvals before the decision. */
  given: readonly HistoryRow[];
};

const Given = z.array(z.object({ audit_id: z.string() }));

/** Returns histories of an organisation's held calls by approval id. Two statements, by primary keys. */
export async function findCallHistories(
  db: Db,
  organisationId: string,
  approvalIds: readonly string[],
): Promise<ReadonlyMap<string, CallHistory>> {
  if (approvalIds.length === 0) return new Map();
  const calls = await db
    .selectFrom('approvals')
    .select([
      'id',
      'status',
      'created_at',
      'expires_at',
      'decided_at',
      'decided_by',
      'decided_how',
      'decided_on',
      'note',
      'corrected_by',
      'corrected_at',
      'approved_before',
      'audit_id',
      'decision_audit_id',
      'replay_audit_id',
    ])
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', approvalIds)
    .execute();
  const given = new Map(
    calls.map(({ id, approved_before: text }) => [
      id,
      text === null ? [] : readStored(Given, text, `approvals of held call ${id}`).map(({ audit_id }) => audit_id),
    ]),
  );
  const ids = calls.flatMap((call) =>
    [call.audit_id, call.decision_audit_id ?? [], call.replay_audit_id ?? [], given.get(call.id) ?? []].flat(),
  );
  const rows =
    ids.length === 0
      ? []
      : await db
          .selectFrom('audit_rows')
          .select(['id', 'state', 'created_at', 'result', 'reason', 'upstream_status', 'flags', 'receipt_kid'])
          .where('organisation_id', '=', organisationId)
          .where('id', 'in', ids)
          .execute();
  const byId = new Map(rows.map((row) => [row.id, row]));
  return new Map(
    calls.map(({ audit_id, decision_audit_id, replay_audit_id, ...call }) => [
      call.id,
      {
        ...call,
        held: byId.get(audit_id),
        given: (given.get(call.id) ?? []).flatMap((id) => byId.get(id) ?? []),
        decision: byId.get(decision_audit_id ?? ''),
        made: byId.get(replay_audit_id ?? ''),
      },
    ]),
  );
}
