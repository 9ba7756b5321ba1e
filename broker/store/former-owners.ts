/** Addresses of removed owners, which name them in what they decided and changed. */
import { type RawBuilder, sql } from 'kysely';
import type { Db } from './store.ts';
import type { FormerOwnerTable, OwnerTable } from './tables/organisations.ts';

/** Stores the address of an owner; call it in the transaction that removes the owner. */
export async function keepAddress(
  db: Db,
  { organisation_id, id }: Pick<OwnerTable, 'organisation_id' | 'id'>,
  now: number,
): Promise<void> {
  await db
    .insertInto('former_owners')
    .columns(['organisation_id', 'id', 'email', 'removed_at'])
    .expression(
      db
        .selectFrom('owners')
        .select(['organisation_id', 'id', 'email'])
        .select(sql<number>`cast(${now} as bigint)`.as('removed_at'))
        .where('organisation_id', '=', organisation_id)
        .where('id', '=', id),
    )
    .execute();
}

/** Lists the removed owners of an organisation whose addresses are stored, oldest removal first. */
export async function listFormerOwners(db: Db, organisationId: string): Promise<FormerOwnerTable[]> {
  return await db
    .selectFrom('former_owners')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('removed_at')
    .orderBy('id')
    .execute();
}

/** Deletes this address (folded) of removed owners: it belongs to somebody else now. */
export async function forgetAddress(db: Db, organisationId: string, email: string): Promise<void> {
  await db
    .deleteFrom('former_owners')
    .where('organisation_id', '=', organisationId)
    .where('email', '=', email)
    .execute();
}

/** Deletes the addresses of owners who were removed before `before`. */
export async function purgeFormerOwners(db: Db, organisationId: string, before: number): Promise<void> {
  await db
    .deleteFrom('former_owners')
    .where('organisation_id', '=', organisationId)
    .where('removed_at', '<', before)
    .execute();
}

/** Returns the addresses of these owners, present or removed, by their ids, as far as they are stored. */
export async function findAddresses(
  db: Db,
  organisationId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('owners')
    .select(['id', 'email'])
    .where('organisation_id', '=', organisationId)
    .where('id', 'in', ids)
    .union(
      db
        .selectFrom('former_owners')
        .select(['id', 'email'])
        .where('organisation_id', '=', organisationId)
        .where('id', 'in', ids),
    )
    .execute();
  return new Map(rows.map(({ id, email }) => [id, email]));
}

/**
 * Selects the address of an owner, present or removed; null: there was no such owner, or the address was deleted. Both are columns of the query, such
 * as `p.decided_by`.
 */
export function addressOf(organisationId: string, ownerId: string): RawBuilder<string | null> {
  const [organisation, owner] = [sql.ref(organisationId), sql.ref(ownerId)];
  return sql<string | null>`coalesce(
    (select email from owners where owners.organisation_id = ${organisation} and owners.id = ${owner}),
    (select email from former_owners where former_owners.organisation_id = ${organisation} and former_owners.id = ${owner}))`;
}
