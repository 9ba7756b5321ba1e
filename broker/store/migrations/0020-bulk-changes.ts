import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** Tables of which thousands of rows may change in one transaction. */
const TABLES = ['agents', 'grants'];

/**
 * On SQLite a trigger runs once per row, and renewing two versions for each of 10,000 rows takes a third of the time for which an apply
 * blocks other writers. A transaction that changes many rows of an organisation therefore first inserts a row into `bulk_changes`, which
 * disables those triggers, and finally deletes it, which renews both versions once. A transaction that does not delete it cannot commit:
 * its foreign key refers to a row that never exists. PostgreSQL renews versions once per transaction anyway.
 */
export async function bulkChanges(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await sql`create table bulk_changes (
    organisation_id text primary key,
    never text not null references bulk_changes (organisation_id) deferrable initially deferred
  )`.execute(db);
  if (dialect === 'postgres') return;
  const renew = (table: string) =>
    `insert into ${table} (organisation_id, version) values (old.organisation_id, hex(randomblob(16)))
      on conflict (organisation_id) do update set version = excluded.version;`;
  await sql
    .raw(
      `create trigger bulk_changes_end after delete on bulk_changes
      begin ${renew('fact_versions')} ${renew('governance_versions')} end`,
    )
    .execute(db);
  const { rows } = await sql<{ name: string; sql: string }>`select name, sql from sqlite_master
    where type = 'trigger' and tbl_name in (${sql.join(TABLES)})`.execute(db);
  for (const trigger of rows) {
    await sql`drop trigger ${sql.id(trigger.name)}`.execute(db);
    await sql.raw(unlessInBulk(trigger.sql)).execute(db);
  }
}

function unlessInBulk(definition: string): string {
  const parts = /^(create trigger \w+ after (\w+) on \w+)\s+(?:when\s([\s\S]*?)\s)?(begin[\s\S]*)$/i.exec(definition);
  if (!parts) throw new Error(`The definition of a trigger is not as it was made: ${definition}`);
  const [, head, event, when, body] = parts;
  const row = event?.toLowerCase() === 'delete' ? 'old' : 'new';
  const condition = `not exists (select 1 from bulk_changes where organisation_id = ${row}.organisation_id)`;
  return `${head} when ${condition}${when === undefined ? '' : ` and (${when})`} ${body}`;
}
