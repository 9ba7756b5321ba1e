import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';
import type { ColumnTypes } from './0001-foundation.ts';

/**
 * The receipt log: a Merkle tree over the final audit rows of each organisation. The database itself inserts a row into `log_pending` in the
 * transaction that makes an audit row final, whoever does; a background job (the sequencer) assigns its index in `log_entries`.
 * `receipt_logs` holds the state of each tree, with its newest checkpoint. Existing rows are appended in the order of their ids.
 */
export async function receiptLog(db: Kysely<unknown>, types: ColumnTypes, dialect: Store['dialect']): Promise<void> {
  const bytes = sql.raw(types.bytes);
  await db.schema
    .createTable('log_pending')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('row_id', 'text', (c) => c.notNull())
    .addColumn('row_hash', 'text', (c) => c.notNull())
    .addColumn('finished_at', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema
    .createTable('receipt_logs')
    .addColumn('organisation_id', 'text', (c) => c.primaryKey().references('organisations.id'))
    .addColumn('origin', 'text', (c) => c.notNull())
    .addColumn('size', 'bigint', (c) => c.notNull())
    .addColumn('root', 'text', (c) => c.notNull())
    .addColumn('signed_with', 'text')
    .addColumn('checkpoint_size', 'bigint')
    .addColumn('checkpoint_root', 'text')
    .addColumn('checkpoint_at', 'bigint')
    .addColumn('signature', 'text')
    .execute();
  await db.schema.createIndex('receipt_logs_new').on('receipt_logs').column('checkpoint_at').execute();
  await db.schema
    .createTable('log_entries')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('tile_index', 'bigint', (c) => c.notNull())
    .addColumn('ids', bytes, (c) => c.notNull())
    .addColumn('row_hashes', bytes, (c) => c.notNull())
    .addColumn('last_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('log_entries_key', ['organisation_id', 'tile_index'])
    .execute();
  await db.schema
    .createIndex('log_entries_by_time')
    .on('log_entries')
    .columns(['organisation_id', 'last_at'])
    .execute();
  await db.schema
    .createTable('log_tiles')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('level', 'integer', (c) => c.notNull())
    .addColumn('tile_index', 'bigint', (c) => c.notNull())
    .addColumn('hashes', bytes, (c) => c.notNull())
    .addPrimaryKeyConstraint('log_tiles_key', ['organisation_id', 'level', 'tile_index'])
    .execute();
  await db.schema
    .createTable('log_checkpoints')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('size', 'bigint', (c) => c.notNull())
    .addColumn('root', 'text', (c) => c.notNull())
    .addColumn('at', 'bigint', (c) => c.notNull())
    .addColumn('signature', 'text', (c) => c.notNull())
    .addColumn('cosignatures', 'text')
    .addPrimaryKeyConstraint('log_checkpoints_key', ['organisation_id', 'size'])
    .execute();
  await db.schema.createIndex('log_checkpoints_by_time').on('log_checkpoints').column('at').execute();
  await db.schema
    .createTable('log_keys')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('public_key', 'text', (c) => c.notNull())
    .addColumn('private_key', bytes)
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('retired_at', 'bigint')
    .execute();
  await sql`insert into log_pending (organisation_id, row_id, row_hash, finished_at)
    select organisation_id, id, row_hash, coalesce(finished_at, created_at) from audit_rows
    where state = 'final' and row_hash is not null order by id`.execute(db);
  for (const statement of dialect === 'sqlite' ? ON_SQLITE : ON_POSTGRES) await sql.raw(statement).execute(db);
}

const NEW_ROW = `insert into log_pending (organisation_id, row_id, row_hash, finished_at)
  select new.organisation_id, new.id, new.row_hash, coalesce(new.finished_at, new.created_at)`;

const ON_SQLITE = [
  `create trigger log_final_insert after insert on audit_rows when new.state = 'final' and new.row_hash is not null
   begin ${NEW_ROW}; end`,
  `create trigger log_final_update after update of state on audit_rows
   when old.state = 'intent' and new.state = 'final' and new.row_hash is not null
   begin ${NEW_ROW}; end`,
];

/** One trigger call per statement, not per row: batches are large. */
const ON_POSTGRES = [
  `create function log_inserted_rows() returns trigger language plpgsql as $$
   begin
     insert into log_pending (organisation_id, row_id, row_hash, finished_at)
       select organisation_id, id, row_hash, coalesce(finished_at, created_at) from new_rows
       where state = 'final' and row_hash is not null;
     return null;
   end $$`,
  `create function log_updated_rows() returns trigger language plpgsql as $$
   begin
     insert into log_pending (organisation_id, row_id, row_hash, finished_at)
       select n.organisation_id, n.id, n.row_hash, coalesce(n.finished_at, n.created_at)
       from new_rows n join old_rows o on o.organisation_id = n.organisation_id and o.id = n.id
       where o.state = 'intent' and n.state = 'final' and n.row_hash is not null;
     return null;
   end $$`,
  `create trigger log_final_insert after insert on audit_rows referencing new table as new_rows
   for each statement execute function log_inserted_rows()`,
  `create trigger log_final_update after update on audit_rows referencing old table as old_rows new table as new_rows
   for each statement execute function log_updated_rows()`,
];
