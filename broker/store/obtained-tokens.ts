/** Tokens of the standing `obtained`: the person has not accepted them yet. Until then they are bound to the browser that obtained them. */
import type { Db } from './store.ts';
import type { PersonTokenTable } from './tables/people.ts';

/** Returns the tokens that this browser obtained in a consent and that the person has not accepted yet. */
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
 * Deletes the tokens of a consent that were not accepted: of one browser (`by`), of all others (`notBy`), or all. Returns them, so that they can be
 * revoked at their platform.
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
  // Tokens stored by an earlier release have no browser.
  if (notBy !== undefined)
    query = query.where((eb) => eb.or([eb('browser_hash', 'is', null), eb('browser_hash', '!=', notBy)]));
  return await query.returningAll().execute();
}

/** Deletes tokens obtained before `before` and not accepted, in all organisations. Returns them, so that they can be revoked at their platform. */
export async function purgeObtainedTokens(db: Db, before: number): Promise<PersonTokenTable[]> {
  return await db
    .deleteFrom('person_tokens')
    .where('standing', '=', 'obtained')
    .where('created_at', '<', before)
    .returningAll()
    .execute();
}
