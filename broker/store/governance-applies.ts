/** The last applies of governance files, and what was in force before each. */

import type { Db } from './store.ts';
import type { GovernanceApplyTable } from './tables/organisations.ts';

/** So many are kept of an organisation; the audit goes on knowing of older ones. */
const KEPT_APPLIES = 20;

/** Keeps an apply, and forgets the oldest ones. */
export async function putGovernanceApply(db: Db, apply: GovernanceApplyTable): Promise<void> {
  const { organisation_id: organisationId } = apply;
  await db.insertInto('governance_applies').values(apply).execute();
  const oldest = await db
    .selectFrom('governance_applies')
    .select('id')
    .where('organisation_id', '=', organisationId)
    .orderBy('id', 'desc')
    .offset(KEPT_APPLIES - 1)
    .limit(1)
    .executeTakeFirst();
  if (oldest)
    await db
      .deleteFrom('governance_applies')
      .where('organisation_id', '=', organisationId)
      .where('id', '<', oldest.id)
      .execute();
}

/** Newest first, without the files. `has_file`: 1 when what was in force before it is kept. */
export const listGovernanceApplies = (db: Db, organisationId: string) =>
  db
    .selectFrom('governance_applies')
    .select(['id', 'made_by', 'how', 'detail', 'change_count', 'changes', 'created_at'])
    .select((eb) => eb.case().when('file_before', 'is', null).then(0).else(1).end().as('has_file'))
    .where('organisation_id', '=', organisationId)
    .orderBy('id', 'desc')
    .execute();

/** What was in force before an apply, compressed; null: it was too long. Undefined: there is no such apply, or not any more. */
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
