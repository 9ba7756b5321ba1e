import { type Kysely, sql } from 'kysely';

/**
 * The process that makes the call of an `Idempotency-Key`, and whether the call is a read, so that the key of a process that died before the
 * call was recorded is released as soon as the process is known to be dead. Null once the call is answered or closed, and for keys of an
 * earlier release.
 */
export async function idempotencyInstances(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('idempotency_keys').addColumn('instance_id', 'text').execute();
  await db.schema.alterTable('idempotency_keys').addColumn('is_read', 'integer').execute();
  await sql`create index idempotency_keys_under_way on idempotency_keys (instance_id) where instance_id is not null`.execute(
    db,
  );
}
