/** The stores that a test runs on: SQLite always, PostgreSQL where TEST_DATABASE_URL names a server. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterFile } from './after-file.ts';

export type StoreKind = 'sqlite' | 'postgres';

const server = process.env.TEST_DATABASE_URL;
if (!server && process.env.CI) throw new Error('CI must test on PostgreSQL too: set TEST_DATABASE_URL.');

export const STORES: readonly StoreKind[] = server ? ['sqlite', 'postgres'] : ['sqlite'];

/** What reads as a skip, with its reason, in the list of tests. */
export const postgresNote = server ? '' : ' (PostgreSQL skipped: TEST_DATABASE_URL is not set)';

async function administer(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: server! });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A new, empty database, dropped after this test file. Answers its URL. */
export async function newDatabase(): Promise<string> {
  const name = `agent_broker_${randomBytes(6).toString('hex')}`;
  await administer(`create database ${name}`);
  afterFile(() => administer(`drop database if exists ${name} with (force)`));
  const url = new URL(server!);
  url.pathname = `/${name}`;
  return url.href;
}

/** A new, empty folder, removed after this test file: in several tries, since a browser that was ended writes a moment longer. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-test-'));
  afterFile(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }));
  return folder;
}
