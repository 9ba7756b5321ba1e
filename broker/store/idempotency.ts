import { sql } from 'kysely';
import type { IdempotencyTable } from './schema.ts';
import type { Db } from './store.ts';

/**
 * Claims an idempotency key. Returns `claimed`, or the row of the earlier claim; undefined when that was released in between.
 * An expired row counts as none.
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

/** Stores the response (sealed) of a claimed key; null: only the fact that there was one. */
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

const HOUR_MS = 3_600_000;
const hourOf = (moment: number) => Math.floor(moment / HOUR_MS);

/**
 * Reserves bytes of the quota for stored responses of an agent and its children. They are released when the hour of
 * `expires_at` has passed: a counter for each hour needs one statement, a sum over the stored responses would read them all.
 *
 * @param family `agent_id`: the parent's, or the agent's own when it has none
 * @param most the quota in bytes
 * @returns false when it would be exceeded; nothing is reserved then
 */
export async function reserveResponseBytes(
  db: Db,
  family: Pick<IdempotencyTable, 'organisation_id' | 'agent_id'>,
  { bytes, expiresAt, now, most }: { bytes: number; expiresAt: number; now: number; most: number },
): Promise<boolean> {
  const { organisation_id, agent_id } = family;
  const { rows } = await sql`
    insert into stored_responses (organisation_id, agent_id, hour, bytes)
    select cast(${organisation_id} as text), cast(${agent_id} as text), cast(${hourOf(expiresAt)} as bigint), cast(${bytes} as bigint)
    where (
      select coalesce(sum(bytes), 0) from stored_responses
      where organisation_id = ${organisation_id} and agent_id = ${agent_id} and hour >= ${hourOf(now)}
    ) <= ${most - bytes}
    on conflict (organisation_id, agent_id, hour) do update set bytes = stored_responses.bytes + excluded.bytes
    returning hour`.execute(db);
  return rows.length > 0;
}

/** Deletes expired keys. */
export async function purgeIdempotencyKeys(db: Db, now: number): Promise<void> {
  await db.deleteFrom('idempotency_keys').where('expires_at', '<=', now).execute();
  await db.deleteFrom('stored_responses').where('hour', '<', hourOf(now)).execute();
}

/** Releases a claim under which nothing was executed. */
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
