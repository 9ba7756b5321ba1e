import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/**
 * Stores the rows that one statement made final in one row: on PostgreSQL a row per audit row costs as much to insert and delete as the
 * log entry itself. SQLite has only per-row triggers, and keeps `log_pending`; both tables are read, so that rows from before an upgrade,
 * and from processes in the middle of one, are not lost.
 */
export async function logBatches(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .createTable('log_batches')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('rows', 'bigint', (c) => c.notNull())
    .addColumn('ids', 'text', (c) => c.notNull())
    .addColumn('row_hashes', 'text', (c) => c.notNull())
    .addColumn('first_at', 'bigint', (c) => c.notNull())
    .addColumn('last_at', 'bigint', (c) => c.notNull())
    .execute();
  if (dialect === 'postgres') for (const statement of ON_POSTGRES) await sql.raw(statement).execute(db);
}

const batchesOf = (rows: string) => `
     insert into log_batches (organisation_id, rows, ids, row_hashes, first_at, last_at)
       select organisation_id, count(*), string_agg(id, ''), string_agg(row_hash, ''), min(ended), max(ended)
       from (${rows}) as ended_rows group by organisation_id;
     return null;`;

const ON_POSTGRES = [
  // These rows live for a second: compressing them would be wasted, and so would a TOAST table for long values.
  'alter table log_batches alter column ids set storage external, alter column row_hashes set storage external',
  'alter table log_batches set (toast_tuple_target = 8160)',
  `create or replace function log_inserted_rows() returns trigger language plpgsql as $$
   begin ${batchesOf(`
     select organisation_id, id, row_hash, coalesce(finished_at, created_at) as ended from new_rows
     where state = 'final' and row_hash is not null`)}
   end $$`,
  `create or replace function log_updated_rows() returns trigger language plpgsql as $$
   begin ${batchesOf(`
     select n.organisation_id, n.id, n.row_hash, coalesce(n.finished_at, n.created_at) as ended
     from new_rows n join old_rows o on o.organisation_id = n.organisation_id and o.id = n.id
     where o.state = 'intent' and n.state = 'final' and n.row_hash is not null`)}
   end $$`,
];
