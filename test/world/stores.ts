/** The stores that tests run on: always SQLite, and PostgreSQL where TEST_DATABASE_URL names a server. */
import { hash, randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import pg from 'pg';
import { inject, test } from 'vitest';
import { ROOT } from './root.ts';
import { afterFile } from './runner/after-file.ts';

export type StoreKind = 'sqlite' | 'postgres';

const server = process.env.TEST_DATABASE_URL;
if (!server && process.env.CI) throw new Error('CI must test on PostgreSQL too: set TEST_DATABASE_URL.');

/** TEST_STORE selects one of them. */
export const STORES: readonly StoreKind[] = (server ? (['sqlite', 'postgres'] as const) : (['sqlite'] as const)).filter(
  (store) => [undefined, store].includes(process.env.TEST_STORE as StoreKind | undefined),
);

const chosen = STORES.slice(-1);
/**
 * One store, for tests that do not depend on SQL. Where there is PostgreSQL, half of the test files have SQLite, on which a test takes half of the
 * processor time: so each store runs tests of every kind.
 */
export const ONE_STORE: readonly StoreKind[] = chosen;

/** Sets ONE_STORE for a test file before it is loaded: always the same one for the same path. */
export function chooseOneStore(path: string): void {
  const [byte = 0] = hash('sha256', relative(ROOT, path), 'buffer');
  chosen.splice(0, 1, ...STORES.slice(byte % STORES.length).slice(0, 1));
}

/** Used on other stores than ONE_STORE: defines no test, so that none is counted as skipped. */
const NO_TEST = Object.assign(() => {}, { each: () => () => {} }) as unknown as typeof test;

/** `test` for tests that do not depend on SQL, in a suite that runs on several stores: defined on ONE_STORE only. */
export const testOnOne = (store: StoreKind): typeof test => (ONE_STORE.includes(store) ? test : NO_TEST);

/** Marks a skip, with its reason, in the list of tests. */
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

/** Returns the URL of a database with a unique name. */
export function databaseUrl(): string {
  const url = new URL(server!);
  url.pathname = `/agent_broker_${randomBytes(6).toString('hex')}`;
  return url.href;
}

/** Creates an empty database, or a copy of an unused one, dropped after this test file. Returns its URL. */
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

/** Returns the name of a URL's database. */
export const nameOf = (url: string): string => new URL(url).pathname.slice(1);

/** Creates a migrated database, in a quarter of the time that migrations take. */
export const newMigratedDatabase = (): Promise<string> => newDatabase({ template: inject('migratedDatabase') });

/** Copies a migrated SQLite store into a folder, creating it if needed. Returns the folder. */
export function copyMigratedStore(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  copyFileSync(join(inject('migratedFolder'), 'broker.db'), join(folder, 'broker.db'));
  return folder;
}

/** Creates an empty folder, removed after this test file: with retries, since a browser that was ended still writes for a moment. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-test-'));
  afterFile(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return folder;
}
