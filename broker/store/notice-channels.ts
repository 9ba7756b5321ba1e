/** Where owners are told. */

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

/** The channels of one person, oldest first. */
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

/** Deletes the channel of this name, whoever it belongs to, with all that was to be sent on it. */
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

/** One by its id alone, for whoever proves to be the service behind it; or undefined. */
export async function findChannelById(db: Db, id: string): Promise<NoticeChannelTable | undefined> {
  return await db.selectFrom('notice_channels').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Stores a new channel. Answers false when the organisation has one of that name. */
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

/** Changes a channel; what is left out stays. */
export async function changeChannel(
  db: Db,
  { organisation_id, id }: ChannelRef,
  change: Partial<Omit<NoticeChannelTable, 'organisation_id' | 'id' | 'created_at'>>,
): Promise<void> {
  await db
    .updateTable('notice_channels')
    .set(change)
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
}

/** Deletes a channel with all that was to be sent on it. */
export async function deleteChannel(db: Db, { organisation_id, id }: ChannelRef): Promise<void> {
  await db.deleteFrom('notice_channels').where('organisation_id', '=', organisation_id).where('id', '=', id).execute();
}

/** Deletes the channels of one person, with all that was to be sent on them. */
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

/** How exact `last_ok_at` is: it is not written with each message. */
export const OK_EVERY_MS = 60_000;

/** The channel took a message. */
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
        eb('last_ok_at', '<', now - OK_EVERY_MS),
      ]),
    )
    .execute();
}

/** The channel did not take a message. `why`: our own words. One that is gone stays so; one of a person is deleted then. */
export async function noteFailing(
  db: Db,
  { organisation_id, id }: ChannelRef,
  status: 'failing' | 'gone',
  why: string,
): Promise<void> {
  if (status === 'gone')
    await db
      .deleteFrom('notice_channels')
      .where('organisation_id', '=', organisation_id)
      .where('id', '=', id)
      .where('owner_id', 'is not', null)
      .execute();
  await db
    .updateTable('notice_channels')
    .set({ status, last_error: why })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('status', '<>', 'gone')
    .execute();
}
