/** Tokens that were obtained in a consent, before the person says that they are to be kept: those of the browser that obtained them. */
import type { Db } from './store.ts';
import type { PersonTokenTable } from './tables/people.ts';

/** What this browser obtained in a consent, and is not kept yet. */
export async function findObtainedTokens(
  db: Db,
  organisationId: string,
  consentId: string,
  browserHash: string,
): Promise<PersonTokenTable | undefined> {
  return await db
    .selectFrom('person_tokens')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('consent_id', '=', consentId)
    .where('browser_hash', '=', browserHash)
    .where('standing', '=', 'obtained')
    .executeTakeFirst();
}

/**
 * Deletes what was obtained in a consent and is not kept yet: of one browser, of all but one, or all. They come back, to be revoked where
 * they are from.
 */
export async function deleteObtainedTokens(
  db: Db,
  organisationId: string,
  consentId: string,
  { by, notBy }: { by?: string; notBy?: string } = {},
): Promise<PersonTokenTable[]> {
  let query = db
    .deleteFrom('person_tokens')
    .where('organisation_id', '=', organisationId)
    .where('consent_id', '=', consentId)
    .where('standing', '=', 'obtained');
  if (by !== undefined) query = query.where('browser_hash', '=', by);
  // What an earlier release stored is nobody's.
  if (notBy !== undefined)
    query = query.where((eb) => eb.or([eb('browser_hash', 'is', null), eb('browser_hash', '!=', notBy)]));
  return await query.returningAll().execute();
}

/** Deletes what was obtained before `before` and that nobody kept, in all organisations. It comes back, to be revoked where it is from. */
export async function purgeObtainedTokens(db: Db, before: number): Promise<PersonTokenTable[]> {
  return await db
    .deleteFrom('person_tokens')
    .where('standing', '=', 'obtained')
    .where('created_at', '<', before)
    .returningAll()
    .execute();
}
