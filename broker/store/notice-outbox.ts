/** The outbox of notices, which the database itself writes (migration 0034), and their deliveries by channel. */
import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { AgentTable } from './tables/agents.ts';
import type { NoticeChannelTable, NoticeDeliveryTable, NoticeEvent, NoticeTable } from './tables/notices.ts';

/** Returns the oldest notices in the outbox, without organisations whose restored store awaits a review. */
export async function listNotices(db: Db, limit: number): Promise<NoticeTable[]> {
  return await db
    .selectFrom('notices')
    .selectAll()
    .where('organisation_id', 'not in', unreviewed)
    .orderBy('created_at')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Inserts a notice into the outbox if the organisation has a channel. */
export async function putNotice(db: Db, notice: Omit<NoticeTable, 'agent_id' | 'platform_id'>): Promise<void> {
  await db
    .insertInto('notices')
    .columns(['organisation_id', 'id', 'event', 'subject_id', 'created_at'])
    .expression(
      db
        .selectFrom('notice_channels')
        .select((eb) => [
          'organisation_id',
          eb.val(notice.id).as('id'),
          eb.val(notice.event).as('event'),
          eb.val(notice.subject_id).as('subject_id'),
          eb.cast<number>(eb.val(notice.created_at), 'bigint').as('created_at'),
        ])
        .where('organisation_id', '=', notice.organisation_id)
        .where('status', '<>', 'gone')
        .limit(1),
    )
    .execute();
}

/** Deletes notices from the outbox. */
export async function deleteNotices(db: Db, notices: readonly Pick<NoticeTable, 'id'>[]): Promise<void> {
  if (notices.length === 0) return;
  await db
    .deleteFrom('notices')
    .where(
      'id',
      'in',
      notices.map(({ id }) => id),
    )
    .execute();
}

/**
 * Lists the active channels of these organisations. Devices of owners whose role is derived from groups are included only if the owner
 * signed in after `signedInSince`.
 */
export async function listChannelsOf(
  db: Db,
  organisationIds: readonly string[],
  signedInSince: number,
): Promise<NoticeChannelTable[]> {
  if (organisationIds.length === 0) return [];
  return await db
    .selectFrom('notice_channels as c')
    .leftJoin('owners as o', (j) =>
      j.onRef('o.organisation_id', '=', 'c.organisation_id').onRef('o.id', '=', 'c.owner_id'),
    )
    .selectAll('c')
    .where('c.organisation_id', 'in', organisationIds)
    .where('c.status', '<>', 'gone')
    .where((eb) =>
      eb.or([
        eb('c.owner_id', 'is', null),
        eb('o.role_by_groups', '=', 0),
        eb('o.last_sign_in_at', '>', signedInSince),
      ]),
    )
    .execute();
}

/** The agents that these notices are about, by uuid. */
export async function findAgentsOf(
  db: Db,
  notices: readonly Pick<NoticeTable, 'agent_id'>[],
): Promise<Map<string, Pick<AgentTable, 'id' | 'agent_id' | 'name'>>> {
  const ids = [...new Set(notices.flatMap(({ agent_id }) => (agent_id === null ? [] : [agent_id])))];
  if (ids.length === 0) return new Map();
  const agents = await db.selectFrom('agents').select(['id', 'agent_id', 'name']).where('id', 'in', ids).execute();
  return new Map(agents.map((agent) => [agent.id, agent]));
}

/** Rows per statement: databases limit the number of parameters. */
const ROWS_AT_ONCE = 500;

/** Stores deliveries. An existing one of the same notice, channel and step stays unchanged. */
export async function putDeliveries(db: Db, deliveries: readonly NoticeDeliveryTable[]): Promise<void> {
  for (let at = 0; at < deliveries.length; at += ROWS_AT_ONCE)
    await db
      .insertInto('notice_deliveries')
      .values(deliveries.slice(at, at + ROWS_AT_ONCE))
      .onConflict((c) => c.columns(['organisation_id', 'channel_id', 'notice_id', 'step']).doNothing())
      .execute();
}

type Subject = { organisation_id: string; event: NoticeEvent; subject_id: string };

/** Cancels messages about this subject that are due but were not sent yet. */
export async function dropDue(db: Db, { organisation_id, event, subject_id }: Subject): Promise<void> {
  await db
    .updateTable('notice_deliveries')
    .set({ state: 'over' })
    .where('organisation_id', '=', organisation_id)
    .where('subject_id', '=', subject_id)
    .where('event', '=', event)
    .where('step', 'in', ['first', 'reminder'])
    .where('state', '=', 'due')
    .execute();
}

/** Lists the messages that were sent about this subject, with the kind of their channel. `notice`: only those of one notice on one channel. */
export async function listSent(
  db: Db,
  { organisation_id, event, subject_id }: Subject,
  notice?: { notice_id: string; channel_id: string },
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
  if (notice) query = query.where('d.notice_id', '=', notice.notice_id).where('d.channel_id', '=', notice.channel_id);
  return await query.execute();
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

/** Organisations whose restored store awaits a review: it may be a copy, so nothing is sent for them. */
const unreviewed = (eb: ExpressionBuilder<Schema, 'notices' | 'notice_deliveries'>) =>
  eb.selectFrom('organisations').select('id').where('restored', 'is not', null);

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
