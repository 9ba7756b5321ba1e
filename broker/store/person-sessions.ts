/** Browser sessions of people, by the hash of their cookie. */

import type { Db } from './store.ts';
import type { PersonSessionTable, PersonTokenTable } from './tables/people.ts';

/** Adds or extends a session; call it in a transaction. `replaces`: the browser's previous cookie, whose sessions move to the new one. */
export async function putPersonSession(
  db: Db,
  session: PersonSessionTable,
  replaces: string | undefined,
): Promise<void> {
  if (replaces !== undefined)
    await db
      .updateTable('person_sessions')
      .set({ cookie_hash: session.cookie_hash })
      .where('cookie_hash', '=', replaces)
      .execute();
  await db
    .insertInto('person_sessions')
    .values(session)
    .onConflict((c) =>
      c
        .columns(['cookie_hash', 'organisation_id', 'person_id', 'consent_id'])
        .doUpdateSet({ expires_at: session.expires_at }),
    )
    .execute();
}

/** Lists the sessions of a browser that have not expired. */
export async function listPersonSessions(db: Db, cookieHash: string, now: number): Promise<PersonSessionTable[]> {
  return await db
    .selectFrom('person_sessions')
    .selectAll()
    .where('cookie_hash', '=', cookieHash)
    .where('expires_at', '>', now)
    .execute();
}

export async function deletePersonSessions(db: Db, cookieHash: string): Promise<void> {
  await db.deleteFrom('person_sessions').where('cookie_hash', '=', cookieHash).execute();
}

/** Deletes expired sessions. */
export async function purgePersonSessions(db: Db, now: number): Promise<void> {
  await db.deleteFrom('person_sessions').where('expires_at', '<=', now).execute();
}

/** Sets when these tokens were last used, unless a later time is stored. */
export async function setLastUsed(db: Db, ids: readonly string[], at: number): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('person_tokens')
    .set({ last_used_at: at } satisfies Partial<PersonTokenTable>)
    .where('id', 'in', ids)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', at)]))
    .execute();
}
