/** Tokens that are deleted here, and still have to be revoked at the server that issued them. */
import type { Instant } from '../policy/facts.ts';
import type { Db } from './store.ts';
import type { TokenRevocationTable } from './tables/connections.ts';
import { inTransaction } from './transaction.ts';

/** Fewer parameters than a statement may have. */
const INSERTED_ROWS = 500;

/** Stores all rows, or none. */
export async function putTokenRevocations(db: Db, rows: readonly TokenRevocationTable[]): Promise<void> {
  await inTransaction(db, async (tx) => {
    for (let from = 0; from < rows.length; from += INSERTED_ROWS)
      await tx
        .insertInto('token_revocations')
        .values(rows.slice(from, from + INSERTED_ROWS))
        .execute();
  });
}

type Named = Pick<TokenRevocationTable, 'organisation_id' | 'id'>;

export async function deleteTokenRevocation(db: Db, { organisation_id, id }: Named): Promise<void> {
  await db
    .deleteFrom('token_revocations')
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
}

/** Sets when the next attempt may begin. */
export async function delayTokenRevocation(db: Db, { organisation_id, id }: Named, nextAt: Instant): Promise<void> {
  await db
    .updateTable('token_revocations')
    .set({ next_at: nextAt })
    .where('organisation_id', '=', organisation_id)
    .where('id', '=', id)
    .execute();
}

const dueAt = (db: Db, now: Instant) =>
  db
    .selectFrom('token_revocations')
    .innerJoin('organisations', 'organisations.id', 'token_revocations.organisation_id')
    .select(['token_revocations.organisation_id', 'token_revocations.id'])
    .where('token_revocations.next_at', '<=', now)
    .where('organisations.restored', 'is', null);

/** Whether an attempt is due that `claimTokenRevocations` would return. */
export const hasDueTokenRevocations = async (db: Db, now: Instant): Promise<boolean> =>
  (await dueAt(db, now).limit(1).executeTakeFirst()) !== undefined;

/**
 * Claims up to `limit` revocations that are due: no other replica attempts them before `until`. None of organisations whose restored store has to be
 * reviewed first.
 */
export async function claimTokenRevocations(
  db: Db,
  { now, until, limit }: { now: Instant; until: Instant; limit: number },
): Promise<TokenRevocationTable[]> {
  const due = await dueAt(db, now).orderBy('token_revocations.next_at').limit(limit).execute();
  const claimed: TokenRevocationTable[] = [];
  for (const { organisation_id, id } of due) {
    const row = await db
      .updateTable('token_revocations')
      .set({ next_at: until })
      .where('organisation_id', '=', organisation_id)
      .where('id', '=', id)
      .where('next_at', '<=', now)
      .returningAll()
      .executeTakeFirst();
    if (row) claimed.push(row);
  }
  return claimed;
}

/** Returns the stored facts of the tokens that now are in the place of those to revoke: of the connection, or of the person for it. */
export async function factsOfSuccessors(
  db: Db,
  row: Pick<TokenRevocationTable, 'organisation_id' | 'connection_id' | 'person_id'>,
): Promise<string[]> {
  const { organisation_id, connection_id, person_id } = row;
  const found =
    person_id === null
      ? db
          .selectFrom('connections')
          .select('oauth')
          .where('organisation_id', '=', organisation_id)
          .where('id', '=', connection_id)
      : db
          .selectFrom('person_tokens')
          .select('oauth')
          .where('organisation_id', '=', organisation_id)
          .where('connection_id', '=', connection_id)
          .where('person_id', '=', person_id);
  return (await found.execute()).flatMap(({ oauth }) => oauth ?? []);
}
