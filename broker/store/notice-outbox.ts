/** The outbox of notices, which the database itself writes (migration 0034). */
import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { NoticeChannelTable, NoticeTable } from './tables/notices.ts';

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
export async function putNotice(
  db: Db,
  notice: Omit<NoticeTable, 'agent_id' | 'platform_id'> & Partial<Pick<NoticeTable, 'agent_id' | 'platform_id'>>,
): Promise<void> {
  await db
    .insertInto('notices')
    .columns(['organisation_id', 'id', 'event', 'subject_id', 'agent_id', 'platform_id', 'created_at'])
    .expression(
      db
        .selectFrom('notice_channels')
        .select((eb) => [
          'organisation_id',
          eb.val(notice.id).as('id'),
          eb.val(notice.event).as('event'),
          eb.val(notice.subject_id).as('subject_id'),
          eb.val(notice.agent_id ?? null).as('agent_id'),
          eb.val(notice.platform_id ?? null).as('platform_id'),
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

/** The agents that these notices are about, by uuid: their names and `agt_` ids, and those of their parents. */
export async function findAgentsOf(
  db: Db,
  notices: readonly Pick<NoticeTable, 'agent_id'>[],
): Promise<Map<string, (string | null)[]>> {
  const ids = [...new Set(notices.flatMap(({ agent_id }) => (agent_id === null ? [] : [agent_id])))];
  if (ids.length === 0) return new Map();
  const agents = await db
    .selectFrom('agents as a')
    .leftJoin('agents as pa', (j) =>
      j.onRef('pa.organisation_id', '=', 'a.organisation_id').onRef('pa.id', '=', 'a.parent_id'),
    )
    .select(['a.id', 'a.name', 'a.agent_id', 'pa.name as parent_name', 'pa.agent_id as parent_agent_id'])
    .where('a.id', 'in', ids)
    .execute();
  return new Map(agents.map(({ id, ...names }) => [id, Object.values(names)]));
}

/** Organisations whose restored store awaits a review: it may be a copy, so nothing is sent for them. */
export const unreviewed = (eb: ExpressionBuilder<Schema, 'notices' | 'notice_deliveries'>) =>
  eb.selectFrom('organisations').select('id').where('restored', 'is not', null);
