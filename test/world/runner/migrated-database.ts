/**
 * Runs once per test run (vitest's globalSetup): creates stores with all migrations, which test files copy. Test files create hundreds, and migrating
 * each takes longer than many of their tests.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../../broker/store/migrate.ts';
import { openPostgres } from '../../../broker/store/postgres/postgres.ts';
import { openSqlite } from '../../../broker/store/sqlite/sqlite.ts';
import type { Store } from '../../../broker/store/store.ts';
import { administer, databaseUrl, nameOf } from '../stores.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of a template database, to which nothing may connect. Empty without PostgreSQL. */
    migratedDatabase: string;
    /** A folder with a closed SQLite store. */
    migratedFolder: string;
  }
}

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-migrated-'));
  await migrateAndClose(openSqlite(folder));
  const removeFolder = () => rmSync(folder, { recursive: true });
  project.provide('migratedFolder', folder);
  project.provide('migratedDatabase', '');
  if (!process.env.TEST_DATABASE_URL) return async () => removeFolder();
  const url = databaseUrl();
  await administer(`create database ${nameOf(url)}`);
  await migrateAndClose(openPostgres(url, { connections: 1, onError: () => {} }));
  project.provide('migratedDatabase', url);
  return async () => {
    removeFolder();
    await administer(`drop database if exists ${nameOf(url)} with (force)`);
  };
}

async function migrateAndClose(store: Store): Promise<void> {
  await migrate(store);
  await store.close();
}
