import { type Kysely, sql } from 'kysely';
import type { ColumnTypes } from './0001-foundation.ts';

/** The key pair that identifies this broker to push services (VAPID, RFC 8292): one for all, because browsers bind subscriptions to it. */
export async function webPush(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  await db.schema
    .createTable('push_keys')
    .addColumn('id', 'text', (c) => c.primaryKey().check(sql`id = 'vapid'`))
    .addColumn('public_jwk', 'text', (c) => c.notNull())
    .addColumn('private_key', sql.raw(types.bytes), (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema
    .createIndex('notice_channels_of_owner')
    .on('notice_channels')
    .columns(['organisation_id', 'owner_id'])
    .execute();
}
