/** What applying a governance file needs beyond the statements of the aggregates. */
import type { OneTimeTokenTable, OrganisationTable } from './schema.ts';
import type { Db } from './store.ts';

/**
 * Keeps every other apply to this organisation waiting until the transaction ends, so that each plans on what the one
 * before it left. Answers the organisation, or undefined when there is none. Writes nothing new: SQLite has no
 * `select for update`.
 */
export async function lockOrganisation(db: Db, id: string): Promise<OrganisationTable | undefined> {
  return await db
    .updateTable('organisations')
    .set((eb) => ({ created_at: eb.ref('created_at') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

/** Puts an agent that was made by hand under the governance file. */
export async function adoptAgent(db: Db, organisationId: string, id: string): Promise<void> {
  await db
    .updateTable('agents')
    .set({ origin: 'governance' })
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .execute();
}

/** Ends the unused tokens of an agent or owner. */
export async function endOneTimeTokens(
  db: Db,
  token: { organisationId: string; kind: OneTimeTokenTable['kind']; subject: string },
  now: number,
): Promise<void> {
  await db
    .updateTable('one_time_tokens')
    .set({ used_at: now })
    .where('organisation_id', '=', token.organisationId)
    .where('kind', '=', token.kind)
    .where('subject', '=', token.subject)
    .where('used_at', 'is', null)
    .execute();
}
