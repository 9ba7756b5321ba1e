/** Backup of the PostgreSQL store, by pg_dump and pg_restore. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { CopiedState } from '../backup-manifest.ts';
import { RESTORE_MARK } from '../generation.ts';

/** PostgreSQL's client programs on this machine. */
export type PostgresPrograms = {
  /** Throws unless the program is installed and not older than a server of this major version. */
  require(program: 'pg_dump' | 'pg_restore', major: number): Promise<void>;
  /** Runs a program, with a database or without. Returns its output. Throws with its error output when it fails. */
  run(program: 'pg_dump' | 'pg_restore', databaseUrl: string | undefined, words: readonly string[]): Promise<string>;
};

/**
 * Dumps the database into the empty file `to`, in pg_dump's custom format, and reads the dump's contents back. The rows are counted in the
 * same snapshot that is dumped. Throws on failure.
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
    // This role may lack the permission to read their tables. With `--schema` instead, the dump would create the schema `public`, which always exists.
    const others = await readColumn(
      client,
      `select nspname from pg_namespace where nspname !~ '^pg_' and nspname not in ('information_schema', current_schema())`,
    );
    // Unlogged tables hold counters of one minute, which a standby does not have.
    const dump = [
      ...others.map((schema) => `--exclude-schema="${schema.replaceAll('"', '""')}"`),
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
 * Loads a dump into an empty database, completely or not at all, and counts its rows. `mark` first marks the database as not being a store yet.
 * Throws a readable error; then the database has only the mark, unless the row counts differed, which is checked after the load.
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
    const contents = await contentsToLoad(client, await programs.run('pg_restore', undefined, ['--list', file]));
    await mark();
    const folder = mkdtempSync(join(tmpdir(), 'agent-broker-contents-'));
    try {
      const list = join(folder, 'contents');
      writeFileSync(list, contents);
      const load = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges', `--use-list=${list}`];
      await programs.run('pg_restore', databaseUrl, [...load, file]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const loaded = await countRows(client, Object.keys(rows));
    for (const [table, count] of Object.entries(rows))
      if (loaded[table] !== count)
        throw new Error(`The table ${table} has ${loaded[table]} rows now, and had ${count} when it was backed up.`);
  } finally {
    await client.end();
  }
}

/**
 * Returns the entries of a dump's list of contents that are in the schema of the store's tables, and the schema itself unless it exists. All
 * other objects of the database, such as extensions and publications, are not the broker's, and mostly need a superuser to create. Throws a
 * readable error when the role's search_path does not include that schema.
 */
async function contentsToLoad(client: pg.Client, list: string): Promise<string> {
  // "237; 1259 49136 TABLE public kysely_migration broker"
  const schemas = [...list.matchAll(/^\d+; \d+ \d+ TABLE (?!DATA )(.+) kysely_migration .+$/gm)].map(
    ([, schema = '']) => schema,
  );
  const searched = await readColumn(
    client,
    `select case part when '"$user"' then current_user else trim(both '"' from part) end
     from regexp_split_to_table(current_setting('search_path'), ' *, *') as part`,
  );
  const schema = searched.find((one) => schemas.includes(one));
  if (schema === undefined)
    throw new Error(
      `The tables of this backup are in the schema ${schemas.join(', ')}, which this role does not search (search_path: ${searched.join(', ')}). ` +
        'Connect as the role that created them, or set the search_path of this role (alter role … set search_path). Nothing was changed.',
    );
  const there = (await readColumn(client, 'select nspname from pg_namespace')).includes(schema);
  const isWanted = (line: string) => {
    const [kind = '', ...name] = line.split(` ${schema} `);
    return name.length > 0 && (there ? ENTRY : ENTRY_OR_SCHEMA).test(kind);
  };
  return `${list.split(/\r?\n/).filter(isWanted).join('\n')}\n`;
}

/** The part of an entry's line before the schema. A publication's table is in the schema, the publication is not. */
const ENTRY = /^\d+; \d+ \d+ (?!PUBLICATION )[A-Z ]+$/;
const ENTRY_OR_SCHEMA = /^\d+; \d+ \d+ (SCHEMA -|(?!PUBLICATION )[A-Z ]+)$/;

/** The server's major version. */
async function majorOf(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ number: string }>(`select current_setting('server_version_num') as number`);
  return Math.floor(Number(rows[0]?.number) / 10_000);
}

/** Returns the contents of the database, as seen by the client's transaction. */
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
