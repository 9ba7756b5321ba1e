/** Transactions whose work may request a rollback by its return value, so that no error class has to carry the reason. */
import type { Kysely } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';

/** Result of a transaction that was rolled back because its work requested it; `reason`: given by the work. */
export class RolledBack<Reason> {
  readonly reason: Reason;
  constructor(reason: Reason) {
    this.reason = reason;
  }
}

/** Returned by the work of a transaction to roll back everything that it wrote. */
export const rollback = <Reason>(reason: Reason): RolledBack<Reason> => new RolledBack(reason);

/** Thrown to leave Kysely's transaction; never escapes from this file. */
const UNDO = new Error('rollback');

/**
 * Runs `work` in one transaction and commits, unless it returns `rollback(reason)`.
 *
 * @returns what the work returned
 * @throws errors of the work or the store: then nothing was committed, or it is unknown whether the commit succeeded
 */
export async function inTransaction<Done>(db: Kysely<Schema>, work: (tx: Db) => Promise<Done>): Promise<Done> {
  let undone: Done | undefined;
  try {
    return await db.transaction().execute(async (tx) => {
      const done = await work(tx);
      if (!(done instanceof RolledBack)) return done;
      undone = done;
      throw UNDO;
    });
  } catch (error) {
    if (undone !== undefined && error === UNDO) return undone;
    throw error;
  }
}
