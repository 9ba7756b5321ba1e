/** Invites: one-time secrets with which an agent that an admin described in advance binds its own key. */

import type { Db } from './store.ts';
import type { InviteTable } from './tables/registrations.ts';

/** Stores an invite. */
export async function putInvite(db: Db, invite: InviteTable): Promise<void> {
  await db.insertInto('invites').values(invite).execute();
}

/** The invite with this secret, of any organisation; or undefined. */
export async function findInviteByToken(db: Db, tokenHash: string): Promise<InviteTable | undefined> {
  return await db.selectFrom('invites').selectAll().where('token_hash', '=', tokenHash).executeTakeFirst();
}

/** An organisation's invites, newest first, recently ended ones included. */
export async function listInvites(db: Db, organisationId: string): Promise<InviteTable[]> {
  return await db
    .selectFrom('invites')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

/** Consumes an unexpired invite for the agent that is created from it. Returns true to exactly one caller. */
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

/** Revokes an unused invite. Returns it; undefined when it was used, or there is none. */
export async function removeInvite(db: Db, organisationId: string, id: string): Promise<InviteTable | undefined> {
  return await db
    .deleteFrom('invites')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .where('claimed_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
}

/** Deletes invites that expired before `before`. */
export async function purgeInvites(db: Db, before: number): Promise<void> {
  await db.deleteFrom('invites').where('expires_at', '<', before).execute();
}
