/** Online backup of the SQLite store. */
import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { CopiedState } from '../backup-manifest.ts';
import { PAGE_BYTES } from './connection.ts';

/**
 * Copies the database at `path` into the empty file `to`, as a consistent snapshot, and checks the copy. Throws on failure. Uses one read
 * transaction (VACUUM INTO): the shell's `.backup` releases its lock between steps, restarts after every commit, and never ends on a busy
 * broker.
 */
export function copySqlite(path: string, to: string, madeAt: Date): CopiedState {
  if (!existsSync(path)) throw new Error(`There is no store at ${path}.`);
  const source = new DatabaseSync(path, { readOnly: true });
  try {
    source.exec(`PRAGMA busy_timeout=5000; PRAGMA page_size=${PAGE_BYTES}`);
    source.prepare('VACUUM INTO ?').run(to);
  } finally {
    source.close();
  }
  const copy = new DatabaseSync(to);
  try {
    // Marks the copy as a backup, so that no broker runs on it without a restore: see broker/process/generation.ts.
    copy.prepare(`insert into meta (name, value) values ('backup', ?)`).run(madeAt.toISOString());
    checkSqlite(copy);
    return stateOf(copy);
  } finally {
    copy.close();
  }
}

/** Throws when pages or records of a database are damaged. */
function checkSqlite(database: DatabaseSync): void {
  const [found] = database.prepare('PRAGMA quick_check').all();
  if (found?.quick_check !== 'ok') throw new Error(`The copy failed its integrity check: ${found?.quick_check}.`);
}

function stateOf(database: DatabaseSync): CopiedState {
  const column = (statement: string): string[] =>
    database
      .prepare(statement)
      .all()
      .map((row) => String(Object.values(row)[0]));
  const [checkValue] = column(`select value from meta where name = 'master_key_check_value'`);
  const [storeId] = column(`select value from meta where name = 'store_id'`);
  const [generation = '0'] = column(`select value from meta where name = 'generation'`);
  const tables = column(
    `select name from sqlite_schema where type = 'table' and name not like 'sqlite%' order by name`,
  );
  return {
    store: 'sqlite',
    migrations: column('select name from kysely_migration order by name'),
    master_key_check_value: checkValue ?? null,
    store_id: storeId ?? null,
    generation: Number(generation),
    rows: Object.fromEntries(tables.map((table) => [table, Number(column(`select count(*) from "${table}"`)[0])])),
  };
}
