import { type ExpressionBuilder, sql } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { EndedSessionTable, OwnerTable } from './tables/organisations.ts';

/** No session of an owner is longer. */
export const LONGEST_SESSION_MS = 12 * 3600_000;

/** Of the session at the identity provider that an owner's session comes from: names of the person there and of that session, if it has one. */
export type ProviderSession = { person: string; session?: string };

/** By what a session ends before its time. `begunAt`: milliseconds since the epoch. `isOurs`: a session of ours, and no bearer of the provider. */
export type SessionMarks = {
  id: string;
  begunAt: number;
  provider?: (ProviderSession & { isOurs: boolean }) | undefined;
};

/** Of all that a person began here by sessions at the provider that it did not name. */
const unnamed = (person: string): string => `unnamed ${person}`;
/** Of all that anybody began as an owner, whoever the person was. */
const OF_OWNER = 'owner ';

/** Whether a session of the owner in question was ended. */
export function isEnded({ id, begunAt, provider }: SessionMarks, eb: ExpressionBuilder<Schema, 'owners'>) {
  const { person, session, isOurs = false } = provider ?? {};
  // `forGood`: names that end a session whenever it began; `ofBefore`: names that end those begun before the row's time.
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
            is('ended_sessions.expires_at', '>=', begunAt + LONGEST_SESSION_MS),
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

/** Owners whose sessions end: one person in an organisation, or everybody whom the issuer identifies. */
type OwnerScope = Pick<OwnerTable, 'organisation_id' | 'id'> | { issuer: string };

/**
 * Ends what was begun here by a session at the identity provider. A session has its name once at an issuer, so that ending it in organisations
 * where nobody began anything by it changes nothing. Returns in how many organisations it is newly recorded as ended.
 */
export const endProviderSession = (db: Db, scope: OwnerScope, session: string, now: number): Promise<number> =>
  markEnded(db, scope, session, now + LONGEST_SESSION_MS, { forGood: true });

/** Ends what a person began until then, by any session at the identity provider. Returns how many organisations that is new in. */
export const endPersonsSessions = (db: Db, owner: OwnerScope, person: string, until: number): Promise<number> =>
  markEnded(db, owner, person, until + LONGEST_SESSION_MS);

/**
 * Ends what a person began here until then by sessions at the identity provider that it did not name: one of these has ended, and nothing tells which.
 * Bearers of the provider are not among them: they expire by themselves, and belong to programs.
 */
export const endUnnamedSessions = (db: Db, owner: OwnerScope, person: string, until: number): Promise<number> =>
  markEnded(db, owner, unnamed(person), until + LONGEST_SESSION_MS);

/** Ends whatever was begun as this owner until then, bearers of the provider included: the owner is another person from then on. */
export const endOwnersSessions = (db: Db, owner: Pick<OwnerTable, 'organisation_id' | 'id'>, until: number) =>
  markEnded(db, owner, OF_OWNER + owner.id, until + LONGEST_SESSION_MS);

/** `forGood`: whenever it began, so that a later row would say nothing more. */
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
            : // No pattern of `like`, whose wildcards an issuer may have.
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
