/** Store functions for applying a governance file, beyond those of the single tables. */

import type { Db } from './store.ts';
import type { OrganisationTable } from './tables/organisations.ts';
import type { OneTimeTokenTable } from './tables/registrations.ts';

/**
 * Locks the organisation until the transaction ends, so that concurrent applies are serialised and each plans on the result of the previous
 * one. Returns the organisation, or undefined when there is none. Locks by a no-op update, because SQLite has no `select for update`.
 */
export async function lockOrganisation(db: Db, id: string): Promise<OrganisationTable | undefined> {
  return await db
    .updateTable('organisations')
    .set((eb) => ({ created_at: eb.ref('created_at') }))
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst();
}

/**
 * Returns the version of everything that a governance file covers; it is replaced on every change, whoever makes it. Undefined for an
 * organisation in which nothing of that was changed yet.
 */
export async function findGovernanceVersion(db: Db, organisationId: string): Promise<string | undefined> {
  const found = await db
    .selectFrom('governance_versions')
    .select('version')
    .where('organisation_id', '=', organisationId)
    .executeTakeFirst();
  return found?.version;
}

/**
 * Changes many agents and grants of an organisation in the caller's transaction. The versions of its facts and of its governance are
 * renewed once, at the end, even if no row changed.
 */
export async function changeInBulk<Done>(db: Db, organisationId: string, change: () => Promise<Done>): Promise<Done> {
  await db.insertInto('bulk_changes').values({ organisation_id: organisationId, never: '' }).execute();
  const done = await change();
  await db.deleteFrom('bulk_changes').where('organisation_id', '=', organisationId).execute();
  return done;
}

/** Ids in one statement: SQLite takes 32,766 parameters. */
const IDS_PER_STATEMENT = 1_000;

/** Makes these agents, which were not created by the governance file, managed by it. */
export async function adoptAgents(db: Db, organisationId: string, ids: readonly string[]): Promise<void> {
  for (let at = 0; at < ids.length; at += IDS_PER_STATEMENT)
    await db
      .updateTable('agents')
      .set({ origin: 'governance' })
      .where('organisation_id', '=', organisationId)
      .where('id', 'in', ids.slice(at, at + IDS_PER_STATEMENT))
      .execute();
}

/** Invalidates the unused tokens of an agent or owner, or of several. */
export async function endOneTimeTokens(
  db: Db,
  token: { organisationId: string; kind: OneTimeTokenTable['kind']; subject: string | readonly string[] },
  now: number,
): Promise<void> {
  await db
    .updateTable('one_time_tokens')
    .set({ used_at: now })
    .where('organisation_id', '=', token.organisationId)
    .where('kind', '=', token.kind)
    .where('subject', 'in', [token.subject].flat())
    .where('used_at', 'is', null)
    .execute();
}
