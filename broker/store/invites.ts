/** Invites: secrets with which an agent that an admin described brings its own key. */
import type { InviteTable } from './schema.ts';
import type { Db } from './store.ts';

/** Stores an invite. */
export async function putInvite(db: Db, invite: InviteTable): Promise<void> {
  await db.insertInto('invites').values(invite).execute();
}

/** The invite with this secret, whosever it is; or undefined. */
export async function findInviteByToken(db: Db, tokenHash: string): Promise<InviteTable | undefined> {
  return await db.selectFrom('invites').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
}

/** An organisation's invites, the newest first; those that are over stay for a while. */
export async function listInvites(db: Db, organisationId: string): Promise<InviteTable[]> {
  return await db
    .selectFrom('invites')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

/** Uses an invite up for the agent that is made of it. Answers true to exactly one caller, and only in time. */
export async function claimInvite(
  db: Db,
  invite: Pick<InviteTable, 'organisation_id' | 'id'>,
  agentUuid: string,
  now: number,
): Promise<boolean> {
  const claimed = await db
    .updateTable('invites')
    .set({ claimed_at: now, agent_id: agentUuid })
    .where('organisation_id', '=', invite.organisation_id)
    .where('id', '=', invite.id)
    .where('claimed_at', 'is', null)
    .where('expires_at', '>', now)
    .returning('id')
    .executeTakeFirst();
  return claimed !== undefined;
}

/** Takes back an invite that nobody used. Answers it; undefined when it was used, or there is none. */
export async function removeInvite(db: Db, organisationId: string, id: string): Promise<InviteTable | undefined> {
  return await db
    .deleteFrom('invites')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('claimed_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
}

/** Forgets invites whose time was over before `before`. */
export async function purgeInvites(db: Db, before: number): Promise<void> {
  await db.deleteFrom('invites').where('expires_at', '<', before).execute();
}
