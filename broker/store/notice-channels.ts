/** Channels on which owners are notified. */
import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { NoticeChannelTable } from './tables/notices.ts';

/** An organisation's channels, by name. */
export async function listChannels(db: Db, organisationId: string): Promise<NoticeChannelTable[]> {
  return await db
    .selectFrom('notice_channels')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('name')
    .execute();
}

/** Lists the channels of one person, oldest first. */
export async function listChannelsOfOwner(
  db: Db,
  { organisation_id, id }: { organisation_id: string; id: string },
): Promise<NoticeChannelTable[]> {
  return await db
    .selectFrom('notice_channels')
    .selectAll()
    .where('organisation_id', '=', organisation_id)
    .where('owner_id', '=', id)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Deletes the channel of this name, whoever owns it, with its pending deliveries. */
export async function deleteChannelNamed(db: Db, organisationId: string, name: string): Promise<void> {
  await db
    .deleteFrom('notice_channels')
    .where('organisation_id', '=', organisationId)
    .where('name', '=', name)
    .execute();
}

/** One channel of an organisation, or undefined. */
export async function findChannel(db: Db, organisationId: string, id: string): Promise<NoticeChannelTable | undefined> {
  return await db
    .selectFrom('notice_channels')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Returns a channel by its id alone, for a service that proves to be the one behind the channel; undefined when there is none. */
export async function findChannelById(db: Db, id: string): Promise<NoticeChannelTable | undefined> {
  return await db.selectFrom('notice_channels').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Stores a new channel. False: the organisation has a channel of that name. */
export async function addChannel(db: Db, channel: NoticeChannelTable): Promise<boolean> {
  const added = await db
    .insertInto('notice_channels')
    .values(channel)
    .onConflict((c) => c.columns(['organisation_id', 'name']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return added !== undefined;
}

type ChannelRef = Pick<NoticeChannelTable, 'organisation_id' | 'id'>;

/**
 * Changes a channel; absent members stay as they are. Messages that wait for the end of quiet hours, or for another attempt, become due: the hours may
 * have changed.
 */
export async function changeChannel(
  db: Db,
  { organisation_id, id }: ChannelRef,
  change: Partial<Omit<NoticeChannelTable, 'organisation_id' | 'id' | 'created_at'>>,
  now: number,
): Promise<void> {
  await db
    .updateTable('notice_channels')
    .set(change)
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
  await makeDue(db, { organisation_id, id }, now);
}

/** Makes all messages of a channel that wait for quiet hours or for another attempt due. Reminders stay: they are due before the end of their subject. */
async function makeDue(db: Db, { organisation_id, id }: ChannelRef, now: number): Promise<void> {
  await db
    .updateTable('notice_deliveries')
    .set({ due_at: now })
    .where('organisation_id', '=', organisation_id)
    .where('channel_id', '=', id)
    .where('state', '=', 'due')
    .where('step', 'in', ['first', 'outcome'])
    .where('due_at', '>', now)
    .execute();
}

/** Deletes a channel with its pending deliveries. */
export async function deleteChannel(db: Db, { organisation_id, id }: ChannelRef): Promise<void> {
  await db.deleteFrom('notice_channels').where('organisation_id', '=', organisation_id).where('id', '=', id).execute();
}

/** Deletes the channels of one person, with their pending deliveries. */
export async function deleteChannelsOfOwner(
  db: Db,
  { organisation_id, id }: { organisation_id: string; id: string },
): Promise<void> {
  await db
    .deleteFrom('notice_channels')
    .where('organisation_id', '=', organisation_id)
    .where('owner_id', '=', id)
    .execute();
}

/** Resolution of `last_ok_at`, which is not written with every message. */
export const WRITE_INTERVAL_MS = 60_000;

/** Records that the channel accepted a test notice: what waits for another attempt becomes due. */
export async function noteMended(db: Db, channel: ChannelRef, now: number): Promise<void> {
  await noteWorking(db, channel, now);
  await makeDue(db, channel, now);
}

/** Records that the channel accepted a message. */
export async function noteWorking(db: Db, { organisation_id, id }: ChannelRef, now: number): Promise<void> {
  await db
    .updateTable('notice_channels')
    .set({ status: 'active', last_ok_at: now, last_error: null })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where((eb) =>
      eb.or([
        eb('status', '<>', 'active'),
        eb('last_error', 'is not', null),
        eb('last_ok_at', 'is', null),
        eb('last_ok_at', '<', now - WRITE_INTERVAL_MS),
      ]),
    )
    .execute();
}

/**
 * Records that the channel rejected a message; `active`: that it accepted one, but not for all of its recipients. `channel`: as it was read before the
 * message was sent; one that has been changed since is left alone, because its new settings rejected nothing. `why`: the broker's own text. A `gone` channel stays so, or is deleted if it is one person's.
 *
 * @returns whether the channel still has those settings
 */
export async function noteFailing(
  db: Db,
  { organisation_id, id, settings, secret }: Pick<NoticeChannelTable, 'organisation_id' | 'id' | 'settings' | 'secret'>,
  status: 'active' | 'failing' | 'gone',
  why: string,
): Promise<boolean> {
  const unchanged = (eb: ExpressionBuilder<Schema, 'notice_channels'>) =>
    eb.and([
      eb('organisation_id', '=', organisation_id),
      eb('id', '=', id),
      eb('settings', '=', settings),
      secret === null ? eb('secret', 'is', null) : eb('secret', '=', secret),
    ]);
  if (status === 'gone') {
    const { numDeletedRows } = await db
      .deleteFrom('notice_channels')
      .where(unchanged)
      .where('owner_id', 'is not', null)
      .executeTakeFirstOrThrow();
    if (numDeletedRows > 0n) return true;
  }
  await db
    .updateTable('notice_channels')
    .set({ status, last_error: why })
    .where(unchanged)
    .where('status', '<>', 'gone')
    .execute();
  return (await db.selectFrom('notice_channels').select('id').where(unchanged).executeTakeFirst()) !== undefined;
}
