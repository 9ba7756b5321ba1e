import { type ExpressionBuilder, sql } from 'kysely';
import type { Schema } from './schema.ts';
import type { Db } from './store.ts';
import type { IdempotencyTable } from './tables/calls.ts';

/** A key with its claim, which `audit_id` identifies. */
export type ClaimedKey = Pick<IdempotencyTable, 'organisation_id' | 'agent_id' | 'key_hash' | 'audit_id'>;

const isClaim =
  ({ organisation_id, agent_id, key_hash, audit_id }: ClaimedKey) =>
  (eb: ExpressionBuilder<Schema, 'idempotency_keys'>) =>
    eb.and({ organisation_id, agent_id, key_hash, audit_id });

/**
 * Claims an idempotency key. Returns `claimed`, or the row of the earlier claim; undefined when that was released in between. An expired
 * row is ignored.
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

/** A claim of a dead process. `is_recorded`: 1 when its call has an audit row, which has the outcome. */
export type StrandedKey = Pick<
  IdempotencyTable,
  'organisation_id' | 'agent_id' | 'key_hash' | 'audit_id' | 'is_read' | 'created_at'
> & { agent_public_id: string; parent_agent_id: string | null; is_recorded: number };

/** Returns up to `limit` keys whose calls were in flight in processes that are dead, except the process `except`. */
export async function listStrandedKeys(db: Db, except: string, limit: number): Promise<StrandedKey[]> {
  return await db
    .selectFrom('idempotency_keys as k')
    .innerJoin('agents as a', (join) =>
      join.onRef('a.organisation_id', '=', 'k.organisation_id').onRef('a.id', '=', 'k.agent_id'),
    )
    .leftJoin('agents as p', (join) =>
      join.onRef('p.organisation_id', '=', 'a.organisation_id').onRef('p.id', '=', 'a.parent_id'),
    )
    .leftJoin('audit_rows as r', (join) =>
      join.onRef('r.organisation_id', '=', 'k.organisation_id').onRef('r.id', '=', 'k.audit_id'),
    )
    .select(['k.organisation_id', 'k.agent_id', 'k.key_hash', 'k.audit_id', 'k.is_read', 'k.created_at'])
    .select(['a.agent_id as agent_public_id', 'p.agent_id as parent_agent_id'])
    .select((eb) => eb.case().when('r.id', 'is', null).then(0).else(1).end().as('is_recorded'))
    .where('k.instance_id', 'is not', null)
    .where('k.instance_id', '<>', except)
    .where(({ not, exists, selectFrom }) =>
      not(exists(selectFrom('instances').select('instances.id').whereRef('instances.id', '=', 'k.instance_id'))),
    )
    .limit(limit)
    .execute();
}

/** Clears the process of a key whose call is recorded, so that the key is not listed as stranded any more. */
export async function clearKeyInstance(db: Db, key: ClaimedKey): Promise<void> {
  await db.updateTable('idempotency_keys').set({ instance_id: null }).where(isClaim(key)).execute();
}

/** Stores the sealed response of a claimed key; null: only the fact that there was a response. */
export async function putIdempotentAnswer(
  db: Db,
  key: ClaimedKey,
  answer: { status: number; sealed: Uint8Array | null },
): Promise<void> {
  await db
    .updateTable('idempotency_keys')
    .set({ status: answer.status, answer: answer.sealed, instance_id: null })
    .where(isClaim(key))
    .execute();
}

const HOUR_MS = 3_600_000;
const hourOf = (moment: number) => Math.floor(moment / HOUR_MS);

/**
 * Reserves bytes of the quota for stored responses of an agent and its children. They are released when the hour of `expires_at` has passed:
 * with a counter per hour this takes one statement, whereas a sum over the stored responses would read them all.
 *
 * @param family `agent_id`: the parent's, or the agent's own when it has no parent
 * @param most the quota in bytes
 * @returns false when the quota would be exceeded; nothing is reserved then
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
export async function releaseIdempotencyKey(db: Db, key: ClaimedKey): Promise<void> {
  await db.deleteFrom('idempotency_keys').where(isClaim(key)).execute();
}
