import { type ExpressionBuilder, sql } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { EndedSessionTable, OwnerTable } from './tables/organisations.ts';

/** Maximum lifetime of an owner's session. */
export const MAX_SESSION_MS = 12 * 3600_000;

/** The identity provider's session behind an owner's session: names of the person and, if known, of the provider's session. */
export type ProviderSession = { person: string; session?: string };

/**
 * What identifies a session when it is ended early. `begunAt`: milliseconds since the epoch. `isOurs`: the broker's own session, not a bearer of the provider.
 */
export type SessionMarks = {
  id: string;
  begunAt: number;
  provider?: (ProviderSession & { isOurs: boolean }) | undefined;
};

/** Name under which all sessions of a person are ended whose session at the provider is not known. */
const unnamed = (person: string): string => `unnamed ${person}`;
/** Prefix of the name under which all sessions of an owner are ended, whichever person began them. */
const OF_OWNER = 'owner ';

/** Builds the condition that a session of this owner was ended. */
export function isEnded({ id, begunAt, provider }: SessionMarks, eb: ExpressionBuilder<Schema, 'owners'>) {
  const { person, session, isOurs = false } = provider ?? {};
  // `forGood`: names that end a session regardless of its start; `ofBefore`: names that end sessions started before the row's time.
  const forGood = session === undefined ? [id] : [id, session];
  const ofBefore = person === undefined ? [] : isOurs && session === undefined ? [person, unnamed(person)] : [person];
  return eb.exists(
    eb
      .selectFrom('ended_sessions')
      .select('ended_sessions.session_id')
      .whereRef('ended_sessions.organisation_id', '=', 'owners.organisation_id')
      .where(({ or, and, eb: is }) =>
        or([
          is('ended_sessions.session_id', 'in', forGood),
          and([
            is('ended_sessions.session_id', 'in', [...ofBefore, sql<string>`${sql.lit(OF_OWNER)} || owners.id`]),
            is('ended_sessions.expires_at', '>=', begunAt + MAX_SESSION_MS),
          ]),
        ]),
      ),
  );
}

/**
 * Returns the current owner of a session, and whether the session was ended, in one statement, because every request of an owner needs it.
 * Undefined when the organisation has no such owner (any more).
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

/** Owners whose sessions end: one owner of an organisation, or all owners that the issuer identifies. */
type OwnerScope = Pick<OwnerTable, 'organisation_id' | 'id'> | { issuer: string };

/**
 * Ends the sessions that were begun by a session at the identity provider. Session names are unique per issuer, so a row in an organisation
 * without such a session has no effect. Returns in how many organisations the session is newly recorded as ended.
 */
export const endProviderSession = (db: Db, scope: OwnerScope, session: string, now: number): Promise<number> =>
  markEnded(db, scope, session, now + MAX_SESSION_MS, { forGood: true });

/** Ends all sessions that a person began before `until`, by any session at the provider. Returns in how many organisations this is new. */
export const endPersonsSessions = (db: Db, owner: OwnerScope, person: string, until: number): Promise<number> =>
  markEnded(db, owner, person, until + MAX_SESSION_MS);

/**
 * Ends the sessions that a person began before `until` and whose session at the provider is not known: one of those has ended, but not which.
 * Bearers of the provider are excluded: they expire by themselves, and belong to programs.
 */
export const endUnnamedSessions = (db: Db, owner: OwnerScope, person: string, until: number): Promise<number> =>
  markEnded(db, owner, unnamed(person), until + MAX_SESSION_MS);

/** Ends everything begun as this owner before `until`, including bearers of the provider: the owner is a different person from then on. */
export const endOwnersSessions = (db: Db, owner: Pick<OwnerTable, 'organisation_id' | 'id'>, until: number) =>
  markEnded(db, owner, OF_OWNER + owner.id, until + MAX_SESSION_MS);

/** Records a name as ended. `forGood`: the row ends a session regardless of its start, so a later row would add nothing. */
async function markEnded(
  db: Db,
  scope: OwnerScope,
  name: string,
  expiresAt: number,
  { forGood = false }: { forGood?: boolean } = {},
): Promise<number> {
  const ended = await db
    .insertInto('ended_sessions')
    .columns(['organisation_id', 'session_id', 'expires_at'])
    .expression(
      db
        .selectFrom('owners')
        .select(['organisation_id', sql`cast(${name} as text)`.as('name'), sql`cast(${expiresAt} as bigint)`.as('end')])
        .distinct()
        .where((eb) =>
          'id' in scope
            ? eb.and([eb('organisation_id', '=', scope.organisation_id), eb('id', '=', scope.id)])
            : // Not `like`: an issuer may contain its wildcards.
              eb(
                eb.fn('substr', ['oidc_subject', eb.lit(1), eb.lit(scope.issuer.length + 1)]),
                '=',
                `${scope.issuer} `,
              ),
        ),
    )
    .onConflict((c) => {
      const known = c.columns(['organisation_id', 'session_id']);
      if (forGood) return known.doNothing();
      return known.doUpdateSet({ expires_at: expiresAt }).where('ended_sessions.expires_at', '<', expiresAt);
    })
    .executeTakeFirst();
  return Number(ended.numInsertedOrUpdatedRows ?? 0);
}

/** Deletes sessions that expired before `before`. */
export async function purgeEndedSessions(db: Db, before: number): Promise<void> {
  await db.deleteFrom('ended_sessions').where('expires_at', '<', before).execute();
}
