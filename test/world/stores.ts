/** The stores that a test runs on: SQLite always, PostgreSQL where TEST_DATABASE_URL names a server. */
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { inject, test } from 'vitest';
import { afterFile } from './after-file.ts';

export type StoreKind = 'sqlite' | 'postgres';

const server = process.env.TEST_DATABASE_URL;
if (!server && process.env.CI) throw new Error('CI must test on PostgreSQL too: set TEST_DATABASE_URL.');

/** TEST_STORE: one of them alone. */
export const STORES: readonly StoreKind[] = (server ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const)).filter(
  (store) => [undefined, store].includes(process.env.TEST_STORE as StoreKind | undefined),
);

/**
 * One of them, for tests that are about none of a store's statements: PostgreSQL where there is one, since many others run on
 * SQLite alone.
 */
export const ONE_STORE = STORES.slice(-1);

/** What a suite defines on another store than ONE_STORE: no test, so that none is counted as skipped. */
const NO_TEST = Object.assign(() => {}, { each: () => () => {} }) as unknown as typeof test;

/** `test` for what is about no store's statements, in a suite that runs on several: it is defined on ONE_STORE alone. */
export const testOnOne = (store: StoreKind): typeof test => (ONE_STORE.includes(store) ? test : NO_TEST);

/** What reads as a skip, with its reason, in the list of tests. */
export const postgresNote = server ? '' : ' (PostgreSQL skipped: TEST_DATABASE_URL is not set)';

export async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server! });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** The URL of a database with a name that no other one has. */
export function databaseUrl(): string {
  const url = new URL(server!);
  url.pathname = `/agent_broker_${randomBytes(6).toString('hex')}`;
  return url.href;
}

/** A new, empty database, or a copy of one that nobody uses, dropped after this test file. Answers its URL. */
export async function newDatabase({
  template,
  encoding,
}: {
  template?: string;
  encoding?: string;
} = {}): Promise<string> {
  const url = databaseUrl();
  const name = nameOf(url);
  const encoded = encoding ? ` template template0 encoding '${encoding}' locale 'C'` : '';
  await administer(`create database ${name}${template ? ` template ${nameOf(template)}` : encoded}`);
  afterFile(() => administer(`drop database if exists ${name} with (force)`));
  return url;
}

/** The name of the database that a URL is of. */
export const nameOf = (url: string): string => new URL(url).pathname.slice(1);

/** A new database as all migrations leave one, in a quarter of the time that they take. */
export const newMigratedDatabase = (): Promise<string> => newDatabase({ template: inject('migratedDatabase') });

/** Puts a store of SQLite as all migrations leave one into a folder, which is made if it is not there. Answers the folder. */
export function copyMigratedStore(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  copyFileSync(join(inject('migratedFolder'), 'broker.db'), join(folder, 'broker.db'));
  return folder;
}

/** A new, empty folder, removed after this test file: in several tries, since a browser that was ended writes a moment longer. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-test-'));
  afterFile(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return folder;
}
