import { sql } from 'kysely';
import type { Db } from '../store.ts';

/** Returns the PostgreSQL settings for durable commits that are switched off. */
export async function settingsThatLoseCommits(db: Db): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from unnest(array['fsync', 'synchronous_commit', 'full_page_writes']) as name
    where current_setting(name) = 'off'`.execute(db);
  return rows.map(({ name }) => name);
}
