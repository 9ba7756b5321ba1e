import { sql } from 'kysely';
import type { Db } from './store.ts';

/** The settings of PostgreSQL, among those that make a commit durable, that are off. */
export async function settingsThatLoseCommits(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(array['fsync', 'synchronous_commit', 'full_page_writes']) as name
    where current_setting(name) = 'off'`.execute(db);
  return rows.map(({ name }) => name);
}
