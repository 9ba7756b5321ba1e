/** Recent applies of governance files, and what was in force before each. */

import type { Db } from './store.ts';
import type { GovernanceApplyTable } from './tables/organisations.ts';

/** Limit of applies per organisation; older ones remain only in the audit. */
const MAX_APPLIES = 20;

/** Stores an apply and deletes the oldest ones beyond the limit. */
export async function putGovernanceApply(db: Db, apply: GovernanceApplyTable): Promise<void> {
  const { organisation_id: organisationId } = apply;
  await db.insertInto('governance_applies').values(apply).execute();
  const oldest = await db
    .selectFrom('governance_applies')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .orderBy('id', 'desc')
    .offset(MAX_APPLIES - 1)
    .limit(1)
    .executeTakeFirst();
  if (oldest)
    await db
      .deleteFrom('governance_applies')
      .where('organisation_id', '=', organisationId)
      .where('id', '<', oldest.id)
      .execute();
}

/** Lists applies, newest first, without the files. `has_file`: 1 when the state before it is stored. */
export const listGovernanceApplies = (db: Db, organisationId: string) =>
  db
    .selectFrom('governance_applies')
    .select(['id', 'made_by', 'how', 'detail', 'change_count', 'changes', 'created_at'])
    .select((eb) => eb.case().when('file_before', 'is', null).then(0).else(1).end().as('has_file'))
    .where('organisation_id', '=', organisationId)
    .orderBy('id', 'desc')
    .execute();

/** Returns the compressed file of what was in force before an apply; null: it was too long. Undefined: the apply does not exist, or was deleted. */
export async function findFileBefore(
  db: Db,
  organisationId: string,
  id: string,
): Promise<Uint8Array | null | undefined> {
  const found = await db
    .selectFrom('governance_applies')
    .select('file_before')
    .where('organisation_id', '=', organisationId)
    .where('id', '=', id)
    .executeTakeFirst();
  return found?.file_before;
}
