/** Prepares many new or changed rows, so that the transaction that writes them is as short as possible. */
import { type CompiledQuery, sql } from 'kysely';
import { uuidv4 } from '../crypto/ids.ts';
import type { Schema } from './schema.ts';
import type { Db, Store } from './store.ts';

type Table = 'agents' | 'workloads' | 'grants' | 'one_time_tokens' | 'policies' | 'policy_versions';

export type NewRows = {
  /** Writes the rows, in a transaction. */
  make(db: Db): Promise<void>;
  /** Deletes staged rows. To be called whether or not they were written. */
  forget(): Promise<void>;
};

/** Rows per statement: a small number is written quickly, and stays below SQLite's limit of 32,766 parameters. */
const ROWS_PER_STATEMENT = 100;
/** Minimum number of rows to stage: fewer are written about as fast as they are copied. */
const WORTH_STAGING = 200;
/** Rows per copy statement: more would block this thread for over 20 ms on a slow machine. */
const ROWS_PER_COPY = 1_000;

/**
 * Does as much work as possible before the transaction. On SQLite, where all other writers wait for it, many rows are first inserted into a
 * temporary table, which takes no lock, and the transaction only copies them, in half of the time. Otherwise the statements are compiled
 * in advance, which takes as long as executing them.
 *
 * @param rest awaited between pieces of the work
 * @param replaces whether to overwrite existing rows with the same id
 */
export async function prepareNewRows<T extends Table>(
  { db, dialect }: Pick<Store, 'db' | 'dialect'>,
  table: T,
  rows: readonly object[],
  rest: () => Promise<void>,
  { replaces = false }: { replaces?: boolean } = {},
): Promise<NewRows> {
  const replaced = replaces && rows.length > 0 ? columnsOf(rows).filter((column) => !IDENTITY.includes(column)) : [];
  if (dialect === 'sqlite' && rows.length >= WORTH_STAGING) return await stage(db, table, rows, rest, replaced);
  const statements = await compile(db, table, rows, rest, replaced);
  return {
    make: async (tx) => {
      for (const statement of statements) {
        await tx.executeQuery(statement);
        await rest();
      }
    },
    forget: async () => {},
  };
}

const IDENTITY: readonly string[] = ['organisation_id', 'id', 'created_at'];
const columnsOf = (rows: readonly object[]): string[] => Object.keys(rows[0] ?? {});

async function compile(
  db: Db,
  table: string,
  rows: readonly object[],
  rest: () => Promise<void>,
  replaced: readonly string[] = [],
): Promise<CompiledQuery[]> {
  const statements: CompiledQuery[] = [];
  for (let at = 0; at < rows.length; at += ROWS_PER_STATEMENT) {
    const values = rows.slice(at, at + ROWS_PER_STATEMENT);
    statements.push(
      db
        .insertInto(table as keyof Schema)
        .values(values as never)
        .$if(replaced.length > 0, (insert) =>
          insert.onConflict((conflict) =>
            conflict
              .columns(['organisation_id', 'id'] as never)
              .doUpdateSet(
                (eb) =>
                  Object.fromEntries(
                    replaced.map((column) => [column, eb.ref(`excluded.${column}` as never)]),
                  ) as never,
              ),
          ),
        )
        .compile(),
    );
    await rest();
  }
  return statements;
}

/** Uses temporary tables of Kysely's single write connection; they are dropped when it closes. */
async function stage(
  db: Db,
  table: string,
  rows: readonly object[],
  rest: () => Promise<void>,
  replaced: readonly string[],
): Promise<NewRows> {
  const batches = Array.from({ length: Math.ceil(rows.length / ROWS_PER_COPY) }, uuidv4);
  const staged = `staged_${table}`;
  const columns = sql.join(columnsOf(rows).map((column) => sql.ref(column)));
  const set = sql.join(replaced.map((column) => sql`${sql.ref(column)} = ${sql.ref(`excluded.${column}`)}`));
  const onConflict = replaced.length > 0 ? sql`on conflict (organisation_id, id) do update set ${set}` : sql``;
  await sql`create temporary table if not exists ${sql.table(staged)} as
    select '' as batch, * from ${sql.table(table)} where false`.execute(db);
  await rest();
  // In primary key order, SQLite inserts each row next to the previous one.
  const byId = rows.map((row) => ({ id: idOf(row), row })).sort((a, b) => (a.id < b.id ? -1 : 1));
  await rest();
  const ordered = byId.map(({ row }, at) => ({ batch: batches[Math.floor(at / ROWS_PER_COPY)], ...row }));
  await rest();
  for (const statement of await compile(db, staged, ordered, rest)) {
    await db.executeQuery(statement);
    await rest();
  }
  return {
    make: async (tx) => {
      for (const batch of batches) {
        await sql`insert into ${sql.table(table)} (${columns})
          select ${columns} from ${sql.table(staged)} where batch = ${batch} order by rowid ${onConflict}`.execute(tx);
        await rest();
      }
    },
    forget: async () => {
      for (const batch of batches) {
        await sql`delete from ${sql.table(staged)} where batch = ${batch}`.execute(db);
        await rest();
      }
    },
  };
}

const idOf = (row: object): string =>
  'id' in row ? String(row.id) : 'token_hash' in row ? String(row.token_hash) : '';
