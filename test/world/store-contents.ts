/** Reads a broker's store from outside, while it runs or after it was killed. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';

type Environment = Readonly<Record<string, string>>;

/** Runs one read-only statement without parameters on the store that this environment names. */
export async function query(environment: Environment, sql: string): Promise<Record<string, unknown>[]> {
  if (environment.DATABASE_URL === undefined) {
    const database = new DatabaseSync(join(environment.AGENT_BROKER_DATA!, 'store', 'broker.db'), { readOnly: true });
    try {
      return database.prepare(sql).all();
    } finally {
      database.close();
    }
  }
  return await connected(environment, async (client) => (await client.query(sql)).rows);
}

async function connected<T>({ DATABASE_URL }: Environment, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: DATABASE_URL });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Returns everything that the broker stores: each file of the data folder, and each table of PostgreSQL as text. */
export async function everythingStored(environment: Environment): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>();
  const folder = environment.AGENT_BROKER_DATA!;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) {
      const path = join(entry.parentPath, entry.name);
      found.set(path, readFileSync(path));
    }
  if (environment.DATABASE_URL === undefined) return found;
  // On one connection: opening one takes longer than reading most tables.
  await connected(environment, async (client) => {
    const tables = await client.query(`select tablename from pg_tables where schemaname = 'public'`);
    for (const { tablename } of tables.rows) {
      const { rows } = await client.query(`select t::text as row from "${tablename}" t`);
      found.set(`table ${tablename}`, Buffer.from(rows.map(({ row }) => row).join('\n')));
    }
  });
  return found;
}

/** Returns where a secret is stored in plain text: as it is, in hexadecimal, or in base64 at any of its three alignments. */
export function placesOf(secret: string, stored: ReadonlyMap<string, Buffer>): string[] {
  const shifted = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)])
      .toString('base64')
      // Characters that depend on neighbouring bytes are dropped.
      .slice(shift === 0 ? 0 : 4, -4),
  );
  const forms = [secret, Buffer.from(secret).toString('hex'), ...shifted];
  return [...stored].filter(([, bytes]) => forms.some((form) => bytes.includes(form))).map(([place]) => place);
}
