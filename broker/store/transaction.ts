/** Transactions whose work may ask for a rollback as a value, so that no error class has to carry the reason. */
import type { Kysely } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';

/** A transaction that was rolled back because its work said so; `reason`: what it said. */
export class RolledBack<Reason> {
  readonly reason: Reason;
  constructor(reason: Reason) {
    this.reason = reason;
  }
}

/** What the work of a transaction answers to undo everything that it wrote. */
export const rollback = <Reason>(reason: Reason): RolledBack<Reason> => new RolledBack(reason);

/** Leaves Kysely's transaction; never seen outside this file. */
const UNDO = new Error('rollback');

/**
 * Runs `work` in one transaction and commits, unless it answers `rollback(reason)`.
 *
 * @returns what the work answered
 * @throws what the work threw, or the store: then nothing was committed, or nobody knows whether the commit arrived
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
