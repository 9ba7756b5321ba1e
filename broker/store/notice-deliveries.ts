/** The deliveries of notices by channel. */
import { unreviewed } from './notice-outbox.ts';
import type { Db } from './store.ts';
import type { DeliveryEvent, NoticeDeliveryTable, NoticeEvent, NoticeTable } from './tables/notices.ts';

/** Rows per statement: databases limit the number of parameters. */
const BATCH_ROWS = 500;

/**
 * Stores deliveries. An existing one of the same notice, channel and step stays unchanged; or is replaced, and thus sent again, if it was created by
 * `sentAgainIfBy`.
 */
export async function putDeliveries(
  db: Db,
  deliveries: readonly NoticeDeliveryTable[],
  sentAgainIfBy?: number,
): Promise<void> {
  for (let at = 0; at < deliveries.length; at += BATCH_ROWS)
    await db
      .insertInto('notice_deliveries')
      .values(deliveries.slice(at, at + BATCH_ROWS))
      .onConflict((c) => {
        const found = c.columns(['organisation_id', 'channel_id', 'notice_id', 'step']);
        if (sentAgainIfBy === undefined) return found.doNothing();
        return found
          .doUpdateSet((eb) => ({
            // Another id, so that the channel does not take it for a copy of the earlier one.
            id: eb.ref('excluded.id'),
            due_at: eb.ref('excluded.due_at'),
            created_at: eb.ref('excluded.created_at'),
            attempts: 0,
            state: 'due',
            last_error: null,
          }))
          .where('notice_deliveries.created_at', '<=', sentAgainIfBy);
      })
      .execute();
}

type Subject = { organisation_id: string; event: DeliveryEvent; subject_id: string };

/** Cancels messages about this subject that are due. One that is being sent stays: its channel may have it, so that an outcome has to follow. */
export async function dropDue(db: Db, { organisation_id, event, subject_id }: Subject): Promise<void> {
  await db
    .updateTable('notice_deliveries')
    .set({ state: 'over' })
    .where('organisation_id', '=', organisation_id)
    .where('subject_id', '=', subject_id)
    .where('event', '=', event)
    .where('step', 'in', ['first', 'reminder'])
    .where('state', '=', 'due')
    .where((eb) => eb.or([eb('attempts', '=', 0), eb('last_error', 'is not', null)]))
    .execute();
}

/** Lists the messages that were sent about this subject, with the kind of their channel. `only`: those on one channel, or of one notice there. */
export async function listSent(
  db: Db,
  { organisation_id, event, subject_id }: Subject,
  only?: { channel_id: string; notice_id?: string },
): Promise<(NoticeDeliveryTable & { kind: string })[]> {
  let query = db
    .selectFrom('notice_deliveries as d')
    .innerJoin('notice_channels as c', (j) =>
      j.onRef('c.organisation_id', '=', 'd.organisation_id').onRef('c.id', '=', 'd.channel_id'),
    )
    .selectAll('d')
    .select('c.kind')
    .where('d.organisation_id', '=', organisation_id)
    .where('d.subject_id', '=', subject_id)
    .where('d.event', '=', event)
    .where('d.step', 'in', ['first', 'reminder'])
    .where('d.state', '=', 'sent');
  if (only) query = query.where('d.channel_id', '=', only.channel_id);
  if (only?.notice_id !== undefined) query = query.where('d.notice_id', '=', only.notice_id);
  return await query.execute();
}

/** Whether a notice of a change of this held call was put into the outbox and is still there, or an update was created for this channel after `since`. */
export async function isUpdateExpected(
  db: Db,
  {
    organisation_id,
    subject_id,
    channel_id,
  }: Pick<NoticeDeliveryTable, 'organisation_id' | 'subject_id' | 'channel_id'>,
  since: number,
): Promise<boolean> {
  const notice = await db
    .selectFrom('notices')
    .select('id')
    .where('organisation_id', '=', organisation_id)
    .where('subject_id', '=', subject_id)
    .where('event', '=', 'call_changed')
    .limit(1)
    .executeTakeFirst();
  if (notice) return true;
  const update = await db
    .selectFrom('notice_deliveries')
    .select('id')
    .where('organisation_id', '=', organisation_id)
    .where('subject_id', '=', subject_id)
    .where('channel_id', '=', channel_id)
    .where('event', '=', 'call_changed')
    .where('created_at', '>=', since)
    .limit(1)
    .executeTakeFirst();
  return update !== undefined;
}

/** Whether a first message about this subject was created after `since`, and was sent or is still due. */
export async function wasNoticeCreatedSince(
  db: Db,
  { organisation_id, event, subject_id }: Pick<NoticeTable, 'organisation_id' | 'event' | 'subject_id'>,
  since: number,
): Promise<boolean> {
  const found = await db
    .selectFrom('notice_deliveries')
    .select('id')
    .where('organisation_id', '=', organisation_id)
    .where('subject_id', '=', subject_id)
    .where('event', '=', event as NoticeEvent)
    .where('step', '=', 'first')
    .where('state', 'in', ['due', 'sent'])
    .where('created_at', '>', since)
    .limit(1)
    .executeTakeFirst();
  return found !== undefined;
}

/** Lists the channels that have due messages. */
export async function listDueChannels(
  db: Db,
  now: number,
): Promise<Pick<NoticeDeliveryTable, 'organisation_id' | 'channel_id'>[]> {
  return await db
    .selectFrom('notice_deliveries')
    .select(['organisation_id', 'channel_id'])
    .distinct()
    .where('state', '=', 'due')
    .where('due_at', '<=', now)
    .where('organisation_id', 'not in', unreviewed)
    .execute();
}

/** Lists the due messages of a channel, the longest due first. */
export async function listDue(
  db: Db,
  { organisation_id, channel_id }: Pick<NoticeDeliveryTable, 'organisation_id' | 'channel_id'>,
  { now, limit }: { now: number; limit: number },
): Promise<NoticeDeliveryTable[]> {
  return await db
    .selectFrom('notice_deliveries')
    .selectAll()
    .where('organisation_id', '=', organisation_id)
    .where('channel_id', '=', channel_id)
    .where('state', '=', 'due')
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(limit)
    .execute();
}

/** One delivery of an organisation, or undefined. */
export async function findDelivery(
  db: Db,
  organisationId: string,
  id: string,
): Promise<NoticeDeliveryTable | undefined> {
  return await db
    .selectFrom('notice_deliveries')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
}

/** Records that an attempt to send the delivery begins: until its result is stored, the channel may have the message. False: it is not due any more. */
export async function beginDelivery(
  db: Db,
  { organisation_id, id, attempts }: Pick<NoticeDeliveryTable, 'organisation_id' | 'id' | 'attempts'>,
): Promise<boolean> {
  const begun = await db
    .updateTable('notice_deliveries')
    .set({ attempts: attempts + 1, last_error: null })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .where('state', '=', 'due')
    .returning('id')
    .executeTakeFirst();
  return begun !== undefined;
}

/** Stores the result of an attempt to send a delivery. */
export async function markDelivery(
  db: Db,
  { organisation_id, id }: Pick<NoticeDeliveryTable, 'organisation_id' | 'id'>,
  mark: Partial<Pick<NoticeDeliveryTable, 'state' | 'due_at' | 'attempts' | 'external_ref' | 'last_error'>>,
): Promise<void> {
  await db
    .updateTable('notice_deliveries')
    .set(mark)
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
}

/** Deletes deliveries that are older than `before` and not due. */
export async function purgeDeliveries(db: Db, before: number): Promise<void> {
  await db.deleteFrom('notice_deliveries').where('created_at', '<', before).where('state', '<>', 'due').execute();
}
