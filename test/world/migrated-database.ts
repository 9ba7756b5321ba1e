/**
 * Set up once for a run (vitest's globalSetup): a database with all migrations, which test files copy. Test files make hundreds, and
 * the migrations of each take longer than many of their tests.
 */
import type { TestProject } from 'vitest/node';
import { migrate } from '../../broker/store/migrate.ts';
import { openPostgres } from '../../broker/store/postgres.ts';
import { administer, databaseUrl, nameOf } from './stores.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of a database that nobody may connect to: it is a template. Empty without PostgreSQL. */
    migratedDatabase: string;
  }
}

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  project.provide('migratedDatabase', '');
  if (!process.env.TEST_DATABASE_URL) return undefined;
  const url = databaseUrl();
  await administer(`create database ${nameOf(url)}`);
  const store = openPostgres(url, { connections: 1, onError: () => {} });
  await migrate(store);
  await store.close();
  project.provide('migratedDatabase', url);
  return () => administer(`drop database if exists ${nameOf(url)} with (force)`);
}
