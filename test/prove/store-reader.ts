/** Reads the store of a running broker from outside, with the broker's stored types. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterFile } from '../world/runner/after-file.ts';

// biome-ignore lint/suspicious/noExplicitAny: rows of whatever was asked for.
type Row = any;

export type Reader = {
  rows(sql: string): Promise<Row[]>;
  /** Changes the store without the broker. */
  change(sql: string): Promise<void>;
  /** Returns everything stored: each file of the data folder, and each PostgreSQL table as text. */
  everything(): Promise<Map<string, Buffer>>;
  /** Closes all files of the data folder until the next query. */
  release(): void;
};

const INT8 = 20;

/** Opens the store that this environment names; it is closed at the end of the test file. */
export async function openReader(environment: Readonly<Record<string, string>>): Promise<Reader> {
  const folder = environment.AGENT_BROKER_DATA!;
  const files = () => {
    const found = new Map<string, Buffer>();
    for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile()) found.set(path, readFileSync(path));
    }
    return found;
  };
  if (environment.DATABASE_URL === undefined) {
    let open: DatabaseSync | undefined;
    const database = () => {
      open ??= new DatabaseSync(join(folder, 'store', 'broker.db'), { timeout: 5_000 });
      return open;
    };
    const release = () => {
      open?.close();
      open = undefined;
    };
    afterFile(release);
    return {
      rows: async (sql) => database().prepare(sql).all(),
      change: async (sql) => database().exec(sql),
      everything: async () => files(),
      release,
    };
  }
  const types = {
    getTypeParser: (oid: number, format?: 'text') => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)),
  };
  // A pool, because it reconnects after an outage of the server.
  const pool = new pg.Pool({ connectionString: environment.DATABASE_URL, max: 1, types: types as never });
  pool.on('error', () => {});
  afterFile(() => pool.end());
  const rows = async (sql: string) => (await pool.query(sql)).rows;
  return {
    rows,
    change: async (sql) => void (await pool.query(sql)),
    everything: async () => {
      const found = files();
      for (const { tablename } of await rows(`select tablename from pg_tables where schemaname = 'public'`))
        found.set(
          `table ${tablename}`,
          Buffer.from((await rows(`select t::text as row from "${tablename}" t`)).map(({ row }) => row).join('\n')),
        );
      return found;
    },
    release: () => {},
  };
}
