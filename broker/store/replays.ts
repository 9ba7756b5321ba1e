/** The replay of an approved call: claimed, in progress, finished. Every step is guarded by the claim's fencing token. */
import { sql } from 'kysely';
import { uuidv4 } from '../crypto/ids.ts';
import { putNotice } from './notice-outbox.ts';
import type { Db } from './store.ts';
import type { ApprovalTable } from './tables/approvals.ts';

/** A claim on an approval. */
export type Claim = Pick<ApprovalTable, 'organisation_id' | 'id' | 'fence'>;

export type ReplayStep =
  | { exec_state: 'intent' }
  | { exec_state: 'done'; executed_at: number; result: Uint8Array; result_summary: string }
  | { exec_state: 'failed'; executed_at: number | null; execution_error: string }
  | { exec_state: 'unknown'; execution_error: string };

/**
 * Advances the state of a replay at `now`. `auditId`: the replay's audit row; only the replay with that row can advance from `intent`. False: another
 * process has the claim, or the replay is finished. Idempotent.
 */
export async function moveReplay(
  db: Db,
  claim: Claim,
  auditId: string,
  step: ReplayStep,
  now: number,
): Promise<boolean> {
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
  if (moved && step.exec_state !== 'intent') await noteReplayed(db, claim, now);
  return moved !== undefined;
}

/** Notices of the approval may have been sent already, and say only that it was approved. */
const noteReplayed = (db: Db, { organisation_id, id }: Omit<Claim, 'fence'>, now: number): Promise<void> =>
  putNotice(db, { organisation_id, id: uuidv4(), event: 'call_replayed', subject_id: id, created_at: now });

/** Finishes a replay at `now` whose intent is stored, whichever process had the claim. False: it was not in progress with that row. */
export async function endIntendedReplay(
  db: Db,
  approval: Pick<ApprovalTable, 'organisation_id' | 'id'>,
  auditId: string,
  step: Exclude<ReplayStep, { exec_state: 'intent' }>,
  now: number,
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
  if (ended) await noteReplayed(db, approval, now);
  return ended !== undefined;
}

/** Lists up to `limit` claims under which nothing was sent yet, of this process and of dead processes. */
export async function listStrandedClaims(db: Db, instanceId: string, limit: number): Promise<ApprovalTable[]> {
  return await db
    .selectFrom('approvals')
    .selectAll()
    .where('exec_state', '=', 'claimed')
    // Repeats the condition of the partial index: otherwise SQLite scans all held calls.
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

/** Takes over a claim, unless another process did or the replay advanced. Returns the approval with the new claim. */
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
