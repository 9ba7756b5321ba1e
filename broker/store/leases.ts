/** Leases: at most one process at a time does a piece of work (migration 0034). */

import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { LeaseTable } from './tables/installation.ts';

/** `until`: milliseconds since the epoch, by the store's clock. */
type Taking = Pick<LeaseTable, 'name' | 'until'> & {
  holder: string;
  now: number;
  /** The current holder is known to be dead, so its lease can be taken immediately. */
  isFree?: boolean;
  /** An end that did not change for longer than a lease lasts, and so was set by a clock that was ahead. The lease can be taken. */
  stale?: number | undefined;
};

/**
 * Takes a lease that is free or has expired, in one guarded statement, so that one of concurrent processes wins. Returns the fencing token,
 * which grows with each holder; undefined: another process holds the lease.
 */
export async function takeLease(
  db: Db,
  { name, holder, now, until, isFree = false, stale }: Taking,
): Promise<number | undefined> {
  const taken = await db
    .insertInto('leases')
    .values({ name, holder, until, fence: 1 })
    .onConflict((c) => {
      const update = c.column('name').doUpdateSet((eb) => ({ holder, until, fence: eb('leases.fence', '+', 1) }));
      const hasEnded = (eb: ExpressionBuilder<Schema, 'leases'>) =>
        eb.or([eb('leases.until', '<=', now), ...(stale === undefined ? [] : [eb('leases.until', '=', stale)])]);
      return isFree ? update : update.where(hasEnded);
    })
    .returning('fence')
    .executeTakeFirst();
  return taken && Number(taken.fence);
}

/** Returns when a lease ends, in milliseconds since the epoch by the store's clock; undefined: it was never taken. */
export async function leaseEnd(db: Db, name: string): Promise<number | undefined> {
  const lease = await db.selectFrom('leases').select('until').where('name', '=', name).executeTakeFirst();
  return lease && Number(lease.until);
}

type Held = Pick<LeaseTable, 'name' | 'fence'>;

/** Extends a lease, and locks it until the end of the transaction, if in one. False: another process holds it now. */
export async function renewLease(db: Db, { name, fence }: Held, until?: number): Promise<boolean> {
  const renewed = await db
    .updateTable('leases')
    .set(until === undefined ? { fence } : { until })
    .where('name', '=', name)
    .where('fence', '=', fence)
    .returning('name')
    .executeTakeFirst();
  return renewed !== undefined;
}

/** Releases a lease, so that another process can take it immediately. */
export async function releaseLease(db: Db, { name, fence }: Held): Promise<void> {
  await db
    .updateTable('leases')
    .set({ holder: null, until: 0 })
    .where('name', '=', name)
    .where('fence', '=', fence)
    .execute();
}
