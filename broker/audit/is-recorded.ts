/** Detects whether a row was stored by a transaction with unknown result (connection lost at commit). */
import { type AuditRow, findAuditRow, putAuditRow } from '../store/audit.ts';
import type { Db } from '../store/store.ts';
import { inTransaction, rollback } from '../store/transaction.ts';
import { rowHash } from './receipt.ts';

/**
 * Whether the final row, and so its whole transaction, is stored. Probes with a write that is rolled back: unlike a read, a write waits
 * for a transaction that the server is still committing. Throws errors of the store.
 */
export async function isRecorded(db: Db, row: AuditRow): Promise<boolean> {
  const probed = await inTransaction(db, async (tx) =>
    (await putAuditRow(tx, row)) ? rollback('not_there') : undefined,
  );
  if (probed) return false;
  const stored = await findAuditRow(db, row.organisation_id, row.id);
  return stored?.row_hash === rowHash(row);
}
