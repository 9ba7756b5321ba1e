import type { Db } from './store.ts';
import type { UsedChallengeTable } from './tables/approvals.ts';

/** Records that a challenge was used. False: it was used before. One of concurrent callers gets true. */
export async function useChallenge(db: Db, challenge: UsedChallengeTable): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('used_challenges')
    .values(challenge)
    .onConflict((c) => c.column('challenge_hash').doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}

/** Deletes the records of challenges that expired before `before` (milliseconds since the epoch). */
export async function purgeUsedChallenges(db: Db, before: number): Promise<void> {
  await db.deleteFrom('used_challenges').where('expires_at', '<', before).execute();
}
