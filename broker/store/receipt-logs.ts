/** The receipt log of each organisation (migration 0041): entries, tiles, heads and checkpoints. */
import { sql } from 'kysely';
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';
import type { LogCheckpointTable, LogEntriesTable, LogTileTable, ReceiptLogTable } from './tables/receipt-log.ts';

/** Returns the state of an organisation's log; undefined: the log is empty. */
export async function findReceiptLog(db: Db, organisationId: string): Promise<ReceiptLogTable | undefined> {
  return await db
    .selectFrom('receipt_logs')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .executeTakeFirst();
}

const isUnsigned = sql<boolean>`size > coalesce(checkpoint_size, 0)`;

/** Whether any log has rows that no checkpoint covers. */
export async function hasUnsigned(db: Db): Promise<boolean> {
  const log = await db.selectFrom('receipt_logs').select('size').where(isUnsigned).limit(1).executeTakeFirst();
  return log !== undefined;
}

/**
 * Lists logs that have rows without a checkpoint, and whose newest checkpoint was made before `from` or after `until` (by a clock that was
 * ahead); the longest waiting first. `without`: organisations whose logs are excluded.
 */
export async function listDue(
  db: Db,
  { from, until, without, limit }: { from: Instant; until: Instant; without: readonly string[]; limit: number },
): Promise<ReceiptLogTable[]> {
  return await db
    .selectFrom('receipt_logs')
    .selectAll()
    .where(isUnsigned)
    .where((eb) =>
      eb.or([eb('checkpoint_at', 'is', null), eb('checkpoint_at', '<=', from), eb('checkpoint_at', '>=', until)]),
    )
    .$if(without.length > 0, (query) => query.where('organisation_id', 'not in', without))
    .orderBy('checkpoint_at', (by) => by.asc().nullsFirst())
    .limit(limit)
    .execute();
}

/** Lists logs with a checkpoint since `since`, by the clock of the process that made it. */
export async function listSignedSince(db: Db, since: number): Promise<ReceiptLogTable[]> {
  return await db.selectFrom('receipt_logs').selectAll().where('checkpoint_at', '>=', since).execute();
}

/** Moves the head from one size to the next; `origin` is the name of a new log. False: the size was different, because another process has appended. */
export async function moveHead(
  db: Db,
  head: Pick<ReceiptLogTable, 'organisation_id' | 'origin' | 'size' | 'root'> & { from: number },
): Promise<boolean> {
  const { organisation_id, origin, size, root, from } = head;
  if (from === 0) {
    const made = await db
      .insertInto('receipt_logs')
      .values({
        organisation_id,
        origin,
        size,
        root,
        signed_with: null,
        checkpoint_size: null,
        checkpoint_root: null,
        checkpoint_at: null,
        signature: null,
      })
      .onConflict((c) => c.doNothing())
      .returning('size')
      .executeTakeFirst();
    return made !== undefined;
  }
  const moved = await db
    .updateTable('receipt_logs')
    .set({ size, root })
    .where('organisation_id', '=', organisation_id)
    .where('size', '=', from)
    .returning('size')
    .executeTakeFirst();
  return moved !== undefined;
}

/** Writes at least one tile of entries; the last tile grows until it is full. */
export async function putEntries(db: Db, entries: readonly LogEntriesTable[]): Promise<void> {
  await db
    .insertInto('log_entries')
    .values(entries)
    .onConflict((c) =>
      c.columns(['organisation_id', 'tile_index']).doUpdateSet(({ ref }) => ({
        ids: ref('excluded.ids'),
        row_hashes: ref('excluded.row_hashes'),
        last_at: ref('excluded.last_at'),
      })),
    )
    .execute();
}

/** Writes a tile, which grows until it is full. */
export async function putTile(db: Db, tile: LogTileTable): Promise<void> {
  await db
    .insertInto('log_tiles')
    .values(tile)
    .onConflict((c) => c.columns(['organisation_id', 'level', 'tile_index']).doUpdateSet({ hashes: tile.hashes }))
    .execute();
}

/** The entries of one tile, or undefined. */
export async function findEntries(db: Db, organisationId: string, index: number): Promise<LogEntriesTable | undefined> {
  return await db
    .selectFrom('log_entries')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('tile_index', '=', index)
    .executeTakeFirst();
}

/** Lists up to `limit` tiles of entries in order, from tile `from` on, whose last row finished at `since` or later. */
export async function listEntriesSince(
  db: Db,
  organisationId: string,
  { since, from, limit }: { since: number; from: number; limit: number },
): Promise<LogEntriesTable[]> {
  return await db
    .selectFrom('log_entries')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('last_at', '>=', since)
    .where('tile_index', '>=', from)
    .orderBy('tile_index')
    .limit(limit)
    .execute();
}

/** Returns when the last row finished of the first tile after `index` that finished by `now`; undefined: there is none. */
export async function endOfNextTile(
  db: Db,
  organisationId: string,
  index: number,
  now: Instant,
): Promise<Instant | undefined> {
  const tile = await db
    .selectFrom('log_entries')
    .select('last_at')
    .where('organisation_id', '=', organisationId)
    .where('tile_index', '>', index)
    .where('last_at', '<=', now)
    .orderBy('tile_index')
    .limit(1)
    .executeTakeFirst();
  return tile && Number(tile.last_at);
}

/** A tile of level 1 or above, or undefined. */
export async function findTile(
  db: Db,
  organisationId: string,
  level: number,
  index: number,
): Promise<LogTileTable | undefined> {
  return await db
    .selectFrom('log_tiles')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('level', '=', level)
    .where('tile_index', '=', index)
    .executeTakeFirst();
}

/** Stores a checkpoint as the newest one, with the key that signed it. */
export async function putCheckpoint(
  db: Db,
  { organisation_id, size, root, at, signature }: Omit<LogCheckpointTable, 'cosignatures'>,
  keyId: string,
): Promise<void> {
  await db
    .insertInto('log_checkpoints')
    .values({ organisation_id, size, root, at, signature, cosignatures: null })
    .onConflict((c) => c.columns(['organisation_id', 'size']).doNothing())
    .execute();
  await db
    .updateTable('receipt_logs')
    .set({ signed_with: keyId, checkpoint_size: size, checkpoint_root: root, checkpoint_at: at, signature })
    .where('organisation_id', '=', organisation_id)
    .execute();
}

/** Adds the line of a witness, with its newline, to a checkpoint. */
export async function addCosignature(
  db: Db,
  { organisation_id, size }: Pick<LogCheckpointTable, 'organisation_id' | 'size'>,
  line: string,
): Promise<void> {
  await db
    .updateTable('log_checkpoints')
    .set({ cosignatures: sql`coalesce(cosignatures, '') || ${line}` })
    .where('organisation_id', '=', organisation_id)
    .where('size', '=', size)
    .execute();
}

/** The oldest checkpoint that covers the entry at `size` - 1, or undefined. */
export async function findCheckpointFrom(
  db: Db,
  organisationId: string,
  size: number,
): Promise<LogCheckpointTable | undefined> {
  return await db
    .selectFrom('log_checkpoints')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('size', '>=', size)
    .orderBy('size')
    .limit(1)
    .executeTakeFirst();
}

/** The newest checkpoint, or undefined. */
export async function findNewestCheckpoint(db: Db, organisationId: string): Promise<LogCheckpointTable | undefined> {
  return await db
    .selectFrom('log_checkpoints')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('size', 'desc')
    .limit(1)
    .executeTakeFirst();
}
