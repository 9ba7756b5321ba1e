/** Whether a row is stored that was written together with something else, when nobody knows how that ended. */
import { type AuditRow, findAuditRow, putAuditRow } from '../store/audit.ts';
import type { Db } from '../store/store.ts';
import { rowHash } from './receipt.ts';

/** Undoes a write that was only to show whether its row is there. */
class NotThere extends Error {}

/**
 * Whether the final row, and so what was written in its transaction, is stored. It is written once more and that is undone:
 * a write waits for a transaction that the server is still ending, where a look would miss it. Throws as the store does.
 */
export async function isRecorded(db: Db, row: AuditRow): Promise<boolean> {
  try {
    await db.transaction().execute(async (tx) => {
      if (await putAuditRow(tx, row)) throw new NotThere();
    });
  } catch (error) {
    if (error instanceof NotThere) return false;
    throw error;
  }
  const stored = await findAuditRow(db, row.organisation_id, row.id);
  return stored?.row_hash === rowHash(row);
}
