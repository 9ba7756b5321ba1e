/** Leases: which process does a piece of work that one does at a time (migration 0034). */

import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { LeaseTable } from './tables/installation.ts';

/** `until`: milliseconds since the epoch, by the store's clock. */
type Taking = Pick<LeaseTable, 'name' | 'until'> & {
  holder: string;
  now: number;
  /** Whoever holds it is known to be no more. */
  isFree?: boolean;
  /** An end that nobody changed for longer than a lease lasts: that of a clock which was ahead. */
  stale?: number | undefined;
};

/**
 * Takes a lease that nobody holds, or whose time is over, in one guarded statement: one of concurrent processes wins. Answers the
 * fencing token, which is greater with each holder; undefined: another one holds it.
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
      const isOver = (eb: ExpressionBuilder<Schema, 'leases'>) =>
        eb.or([eb('leases.until', '<=', now), ...(stale === undefined ? [] : [eb('leases.until', '=', stale)])]);
      return isFree ? update : update.where(isOver);
    })
    .returning('fence')
    .executeTakeFirst();
  return taken && Number(taken.fence);
}

/** Until when a lease is held, in milliseconds since the epoch by the store's clock; undefined: nobody ever took it. */
export async function leaseEnd(db: Db, name: string): Promise<number | undefined> {
  const lease = await db.selectFrom('leases').select('until').where('name', '=', name).executeTakeFirst();
  return lease && Number(lease.until);
}

type Held = Pick<LeaseTable, 'name' | 'fence'>;

/** Extends a lease, and in a transaction locks it until the end. Answers false when another process holds it by now. */
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

/** Gives a lease back, so that another process can take it at once. */
export async function releaseLease(db: Db, { name, fence }: Held): Promise<void> {
  await db
    .updateTable('leases')
    .set({ holder: null, until: 0 })
    .where('name', '=', name)
    .where('fence', '=', fence)
    .execute();
}
