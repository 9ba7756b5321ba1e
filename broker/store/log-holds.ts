/**
 * Holds of running exports of receipt logs, stored as leases. Until an export ends, rows are kept unless its checkpoint proves their
 * deletion. `fence` is the size of that checkpoint.
 */
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';

/** `id`: id of the export. */
export type LogHold = { organisationId: string; id: string };

const PREFIX = 'log export ';
const nameOf = ({ organisationId, id }: LogHold): string => `${PREFIX}${organisationId} ${id}`;

/** Holds all rows of a log until `until`, by the store's clock. */
export async function putHold(db: Db, hold: LogHold, until: Instant): Promise<void> {
  await db
    .insertInto('leases')
    .values({ name: nameOf(hold), holder: hold.id, until, fence: 0 })
    .execute();
}

/** Extends a hold, for rows whose deletion is announced at index `size` or later. False: the hold had expired and was deleted. */
export async function renewHold(
  db: Db,
  hold: LogHold,
  { size, until }: { size: number; until: Instant },
): Promise<boolean> {
  const renewed = await db
    .updateTable('leases')
    .set({ until, fence: size })
    .where('name', '=', nameOf(hold))
    .returning('name')
    .executeTakeFirst();
  return renewed !== undefined;
}

export async function dropHold(db: Db, hold: LogHold): Promise<void> {
  await db.deleteFrom('leases').where('name', '=', nameOf(hold)).execute();
}

/** A hold lasts ten minutes at most: one that ends later than this from now was stored by a clock that was ahead. */
const MAX_DURATION_MS = 3_600_000;

/** Whether an export holds rows whose deletion is announced at this index. Deletes expired holds first. */
export async function isHeld(db: Db, organisationId: string, index: number, now: Instant): Promise<boolean> {
  await db
    .deleteFrom('leases')
    .where('name', 'like', `${PREFIX}%`)
    .where((eb) => eb.or([eb('until', '<=', now), eb('until', '>', now + MAX_DURATION_MS)]))
    .execute();
  const held = await db
    .selectFrom('leases')
    .select('name')
    .where('name', 'like', `${nameOf({ organisationId, id: '' })}%`)
    .where('fence', '<=', index)
    .limit(1)
    .executeTakeFirst();
  return held !== undefined;
}
