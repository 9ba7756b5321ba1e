/** Time of the last backup that `agent-broker backup` made, stored in the store itself. Other ways to back up do not record it. */
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { Instant } from '../policy/facts.ts';
import { findMeta } from './meta.ts';
import type { Db } from './store.ts';

const NAME = 'last_backup';

/** Returns milliseconds since the epoch; undefined: no backup was made. */
export async function findLastBackup(db: Db): Promise<Instant | undefined> {
  const at = await findMeta(db, NAME);
  return at === undefined ? undefined : Number(at);
}

/** Records the time of a backup. `where`: the file of a SQLite store, or the URL of a PostgreSQL one. Throws when the write fails. */
export async function noteBackup(where: { file: string } | { databaseUrl: string }, at: Instant): Promise<void> {
  if ('file' in where) {
    const database = new DatabaseSync(where.file);
    try {
      database.exec('PRAGMA busy_timeout=5000');
      database.prepare(`insert into meta (name, value) values (?, ?) ${ON_CONFLICT}`).run(NAME, String(at));
    } finally {
      database.close();
    }
    return;
  }
  const client = new pg.Client({ connectionString: where.databaseUrl });
  await client.connect();
  try {
    await client.query(`insert into meta (name, value) values ($1, $2) ${ON_CONFLICT}`, [NAME, String(at)]);
  } finally {
    await client.end();
  }
}

const ON_CONFLICT = 'on conflict (name) do update set value = excluded.value';
