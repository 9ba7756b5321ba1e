import type { ExpressionBuilder } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { EndedSessionTable, OwnerTable } from './tables/organisations.ts';

/** No session of an owner is longer. */
export const LONGEST_SESSION_MS = 12 * 3600_000;

/** Of the session at the identity provider that an owner's session comes from: names of the person there and of that session, if it has one. */
export type ProviderSession = { person: string; session?: string };

/** By what a session ends before its time. `begunAt`: milliseconds since the epoch. */
export type SessionMarks = { id: string; provider?: (ProviderSession & { begunAt: number }) | undefined };

/** Whether a session of the owner in question was ended. */
export function isEnded({ id, provider }: SessionMarks, eb: ExpressionBuilder<Schema, 'owners'>) {
  return eb.exists(
    eb
      .selectFrom('ended_sessions')
      .select('ended_sessions.session_id')
      .whereRef('ended_sessions.organisation_id', '=', 'owners.organisation_id')
      .where(({ or, and, eb: is }) =>
        or([
          is('ended_sessions.session_id', 'in', provider?.session === undefined ? [id] : [id, provider.session]),
          ...(provider === undefined
            ? []
            : [
                and([
                  is('ended_sessions.session_id', '=', provider.person),
                  is('ended_sessions.expires_at', '>=', provider.begunAt + LONGEST_SESSION_MS),
                ]),
              ]),
        ]),
      ),
  );
}

/**
 * The owner of a session, as the owner is now, and whether the session was ended: one statement, because every
 * request of an owner asks this. Undefined when the organisation has no such owner (any more).
 */
export async function findOwnerOfSession(
  db: Db,
  session: { organisationId: string; ownerId: string; marks: SessionMarks },
): Promise<{ owner: OwnerTable; ended: boolean } | undefined> {
  const found = await db
    .selectFrom('owners')
    .selectAll('owners')
    .select((eb) => isEnded(session.marks, eb).as('ended'))
    .where('owners.organisation_id', '=', session.organisationId)
    .where('owners.id', '=', session.ownerId)
    .executeTakeFirst();
  if (!found) return undefined;
  const { ended, ...owner } = found;
  return { owner, ended: Boolean(ended) };
}

/** Records that a session was signed out. Idempotent. */
export async function endSession(db: Db, session: EndedSessionTable): Promise<void> {
  await db
    .insertInto('ended_sessions')
    .values(session)
    .onConflict((c) => c.columns(['organisation_id', 'session_id']).doNothing())
    .execute();
}

/**
 * Ends what a person began here by a session at the identity provider, or, without `session`, by any until `now`, in every organisation. Returns how many
 * organisations have the person for an owner. `subject`: as in `owners.oidc_subject`.
 */
export async function endProviderSession(
  db: Db,
  subject: string,
  { person, session }: ProviderSession,
  now: number,
): Promise<number> {
  const owners = await db.selectFrom('owners').select('organisation_id').where('oidc_subject', '=', subject).execute();
  if (owners.length === 0) return 0;
  const expiresAt = now + LONGEST_SESSION_MS;
  await db
    .insertInto('ended_sessions')
    .values(
      owners.map(({ organisation_id }) => ({
        organisation_id,
        session_id: session ?? person,
        expires_at: expiresAt,
      })),
    )
    .onConflict((c) => c.columns(['organisation_id', 'session_id']).doUpdateSet({ expires_at: expiresAt }))
    .execute();
  return owners.length;
}

/** Deletes sessions that expired before `before`. */
export async function purgeEndedSessions(db: Db, before: number): Promise<void> {
  await db.deleteFrom('ended_sessions').where('expires_at', '<', before).execute();
}
