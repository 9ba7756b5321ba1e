/** The one replay of an approved call: claimed, under way, over. Every step is guarded by the claim's fence. */
import { sql } from 'kysely';
import type { ApprovalTable } from './schema.ts';
import type { Db } from './store.ts';

/** Which claim on which approval. */
export type Claim = Pick<ApprovalTable, 'organisation_id' | 'id' | 'fence'>;

export type ReplayStep =
  | { exec_state: 'intent' }
  | { exec_state: 'done'; executed_at: number; result: Uint8Array; result_summary: string }
  | { exec_state: 'failed'; executed_at: number | null; execution_error: string }
  | { exec_state: 'unknown'; execution_error: string };

/**
 * Moves a replay on. `auditId`: the row of the replay; only that row's replay goes on from `intent`. False: another
 * process has the claim, or the replay is over. Doing it twice does the same.
 */
export async function moveReplay(db: Db, claim: Claim, auditId: string, step: ReplayStep): Promise<boolean> {
  const moved = await db
    .updateTable('approvals')
    .set({ ...step, replay_audit_id: auditId })
    .where('organisation_id', '=', claim.organisation_id)
    .where('id', '=', claim.id)
    .where('fence', '=', claim.fence)
    .where((eb) =>
      eb.or([
        eb('exec_state', '=', 'claimed'),
        eb.and([eb('exec_state', '=', 'intent'), eb('replay_audit_id', '=', auditId)]),
      ]),
    )
    .returning('id')
    .executeTakeFirst();
  return moved !== undefined;
}

/** Ends a replay whose intent is stored, whoever had its claim. False: it was not under way under that row. */
export async function endIntendedReplay(
  db: Db,
  approval: Pick<ApprovalTable, 'organisation_id' | 'id'>,
  auditId: string,
  step: Exclude<ReplayStep, { exec_state: 'intent' }>,
): Promise<boolean> {
  const ended = await db
    .updateTable('approvals')
    .set(step)
    .where('organisation_id', '=', approval.organisation_id)
    .where('id', '=', approval.id)
    .where('exec_state', '=', 'intent')
    .where('replay_audit_id', '=', auditId)
    .returning('id')
    .executeTakeFirst();
  return ended !== undefined;
}

/** Up to `limit` claims of which nothing was sent yet: of this process, and of processes that are not on the list. */
export async function listStrandedClaims(db: Db, instanceId: string, limit: number): Promise<ApprovalTable[]> {
  return await db
    .selectFrom('approvals')
    .selectAll()
    .where('exec_state', '=', 'claimed')
    // In the words of the index of what is under way: otherwise SQLite goes through every held call that there ever was.
    .where(sql<boolean>`exec_state in ('claimed', 'intent')`)
    .where(({ or, eb, not, exists, selectFrom }) =>
      or([
        eb('lease_owner', '=', instanceId),
        not(
          exists(selectFrom('instances').select('instances.id').whereRef('instances.id', '=', 'approvals.lease_owner')),
        ),
      ]),
    )
    .orderBy('decided_at')
    .limit(limit)
    .execute();
}

/** Takes a claim over, unless another process did or the replay went on. Answers the approval under the new claim. */
export async function takeClaim(db: Db, claim: Claim, instanceId: string): Promise<ApprovalTable | undefined> {
  return await db
    .updateTable('approvals')
    .set({ lease_owner: instanceId, fence: claim.fence + 1 })
    .where('organisation_id', '=', claim.organisation_id)
    .where('id', '=', claim.id)
    .where('exec_state', '=', 'claimed')
    .where('fence', '=', claim.fence)
    .returningAll()
    .executeTakeFirst();
}
