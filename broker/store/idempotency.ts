import type { IdempotencyTable } from './schema.ts';
import type { Db } from './store.ts';

/**
 * Claims a client's key. Answers `claimed` when it is claimed now, else the row of whoever was first; undefined when that
 * one gave it back in between. A row past its lifetime counts as none.
 */
export async function claimIdempotencyKey(
  db: Db,
  claim: Omit<IdempotencyTable, 'status' | 'answer'>,
): Promise<IdempotencyTable | 'claimed' | undefined> {
  const claimed = await db
    .insertInto('idempotency_keys')
    .values({ ...claim, status: null, answer: null })
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'agent_id', 'key_hash'])
        .doUpdateSet({ ...claim, status: null, answer: null })
        .where('idempotency_keys.expires_at', '<=', claim.created_at),
    )
    .returning('key_hash')
    .executeTakeFirst();
  if (claimed) return 'claimed';
  return await db
    .selectFrom('idempotency_keys')
    .selectAll()
    .where('organisation_id', '=', claim.organisation_id)
    .where('agent_id', '=', claim.agent_id)
    .where('key_hash', '=', claim.key_hash)
    .executeTakeFirst();
}

/** Keeps the answer (sealed) of a claimed key; null: only that there was one. */
export async function putIdempotentAnswer(
  db: Db,
  key: Pick<IdempotencyTable, 'organisation_id' | 'agent_id' | 'key_hash' | 'audit_id'>,
  answer: { status: number; sealed: Uint8Array | null },
): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set({ status: answer.status, answer: answer.sealed })
    .where('organisation_id', '=', key.organisation_id)
    .where('agent_id', '=', key.agent_id)
    .where('key_hash', '=', key.key_hash)
    .where('audit_id', '=', key.audit_id)
    .execute();
}

/** Forgets keys whose lifetime is over. */
export async function purgeIdempotencyKeys(db: Db, now: number): Promise<void> {
  await db.deleteFrom('idempotency_keys').where('expires_at', '<=', now).execute();
}

/** Gives a claim back: nothing happened under it. */
export async function releaseIdempotencyKey(
  db: Db,
  key: Pick<IdempotencyTable, 'organisation_id' | 'agent_id' | 'key_hash' | 'audit_id'>,
): Promise<void> {
  await db
    .deleteFrom('idempotency_keys')
    .where('organisation_id', '=', key.organisation_id)
    .where('agent_id', '=', key.agent_id)
    .where('key_hash', '=', key.key_hash)
    .where('audit_id', '=', key.audit_id)
    .execute();
}
