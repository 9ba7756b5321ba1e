/** Backup of the PostgreSQL store, by PostgreSQL's own programs. */
import pg from 'pg';
import type { CopiedState } from './backup-manifest.ts';
import { RESTORE_MARK } from './generation.ts';

/** PostgreSQL's own programs on the machine. */
export type PostgresPrograms = {
  /** Throws unless the program is there and not older than a server of this major version. */
  require(program: 'pg_dump' | 'pg_restore', major: number): Promise<void>;
  /** Runs one to its end, on a database or on none. Throws with its own words when it fails. */
  run(program: 'pg_dump' | 'pg_restore', databaseUrl: string | undefined, words: readonly string[]): Promise<void>;
};

/**
 * Dumps the database into the empty file `to`, in pg_dump's custom format, and reads the dump's contents again. The rows are counted in the
 * very snapshot that is dumped. Throws on failure.
 */
export async function dumpPostgres(databaseUrl: string, to: string, programs: PostgresPrograms): Promise<CopiedState> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await programs.require('pg_dump', await majorOf(client));
    await client.query('begin isolation level repeatable read, read only');
    await client.query('set local idle_in_transaction_session_timeout = 0');
    const { rows } = await client.query<{ id: string }>('select pg_export_snapshot() as id');
    const copied = await stateOf(client);
    // Unlogged: counts of a minute, which a standby does not even have.
    const dump = [
      '--format=custom',
      '--no-owner',
      '--no-privileges',
      '--no-unlogged-table-data',
      `--exclude-table=${RESTORE_MARK}`,
      `--snapshot=${rows[0]?.id}`,
      `--file=${to}`,
    ];
    await programs.run('pg_dump', databaseUrl, dump);
    await client.query('commit');
    await programs.run('pg_restore', undefined, ['--list', to]);
    return copied;
  } finally {
    await client.end();
  }
}

/**
 * Loads a dump into an empty database, all of it or nothing, and counts its rows; `mark` says there before that it is no store yet. Throws, in
 * words; then the database has no more than the mark, unless the count was another.
 */
export async function loadDump(
  databaseUrl: string,
  file: string,
  rows: CopiedState['rows'],
  programs: PostgresPrograms,
  mark: () => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await programs.require('pg_restore', await majorOf(client));
    const { rowCount } = await client.query(
      'select from pg_tables where schemaname = current_schema() and tablename <> $1 limit 1',
      [RESTORE_MARK],
    );
    if (rowCount !== 0) throw new Error('The database is not empty. Make an empty one, and name it in DATABASE_URL.');
    await mark();
    const load = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges', file];
    await programs.run('pg_restore', databaseUrl, load);
    const loaded = await countRows(client, Object.keys(rows));
    for (const [table, count] of Object.entries(rows))
      if (loaded[table] !== count)
        throw new Error(`The table ${table} has ${loaded[table]} rows now, and had ${count} when it was backed up.`);
  } finally {
    await client.end();
  }
}

/** The server's major version. */
async function majorOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ number: string }>(`select current_setting('server_version_num') as number`);
  return Math.floor(Number(rows[0]?.number) / 10_000);
}

/** What the database holds, as the client's transaction sees it. */
async function stateOf(client: pg.Client): Promise<CopiedState> {
  const column = (statement: string) => readColumn(client, statement);
  const tables = await column(
    `select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
     and relpersistence = 'p' and relname <> '${RESTORE_MARK}' order by relname`,
  );
  if (!tables.includes('meta')) throw new Error('There is no store of a broker in this database.');
  const [checkValue] = await column(`select value from meta where name = 'master_key_check_value'`);
  const [storeId] = await column(`select value from meta where name = 'store_id'`);
  const [generation = '0'] = await column(`select value from meta where name = 'generation'`);
  return {
    store: 'postgres',
    migrations: await column('select name from kysely_migration order by name'),
    master_key_check_value: checkValue ?? null,
    store_id: storeId ?? null,
    generation: Number(generation),
    rows: await countRows(client, tables),
  };
}

async function countRows(client: pg.Client, tables: readonly string[]): Promise<Record<string, number>> {
  const rows: Record<string, number> = {};
  for (const table of tables) rows[table] = Number((await readColumn(client, `select count(*) from "${table}"`))[0]);
  return rows;
}

const readColumn = async (client: pg.Client, statement: string): Promise<string[]> =>
  (await client.query({ text: statement, rowMode: 'array' })).rows.map(([value]) => String(value));
