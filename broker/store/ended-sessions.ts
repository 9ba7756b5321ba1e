import type { Db } from './store.ts';
import type { EndedSessionTable, OwnerTable } from './tables/organisations.ts';

/**
 * The owner of a session, as the owner is now, and whether the session was signed out: one statement, because every
 * request of an owner asks this. Undefined when the organisation has no such owner (any more).
 */
export async function findOwnerOfSession(
  db: Db,
  session: { organisationId: string; ownerId: string; sessionId: string },
): Promise<{ owner: OwnerTable; ended: boolean } | undefined> {
  const found = await db
    .selectFrom('owners')
    .leftJoin('ended_sessions', (join) =>
      join
        .onRef('ended_sessions.organisation_id', '=', 'owners.organisation_id')
        .on('ended_sessions.session_id', '=', session.sessionId),
    )
    .selectAll('owners')
    .select('ended_sessions.session_id as ended_session')
    .where('owners.organisation_id', '=', session.organisationId)
    .where('owners.id', '=', session.ownerId)
    .executeTakeFirst();
  if (!found) return undefined;
  const { ended_session: ended, ...owner } = found;
  return { owner, ended: ended !== null };
}

/** Records that a session was signed out. Idempotent. */
export async function endSession(db: Db, session: EndedSessionTable): Promise<void> {
  await db
    .insertInto('ended_sessions')
    .values(session)
    .onConflict((c) => c.columns(['organisation_id', 'session_id']).doNothing())
    .execute();
}

/** Deletes sessions that expired before `before`. */
export async function purgeEndedSessions(db: Db, before: number): Promise<void> {
  await db.deleteFrom('ended_sessions').where('expires_at', '<', before).execute();
}
