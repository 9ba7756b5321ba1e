/** A failing start reports the cause and, where possible, the remedy. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { type Config, readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { startSandboxPlatform } from '../../broker/process/sandbox.ts';
import { startFault } from '../../broker/process/start-fault.ts';
import { BIN, COMPILE_CACHE } from '../world/checkout.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { query } from '../world/store-contents.ts';
import { newDatabase, newFolder, STORES } from '../world/stores.ts';

const configured = (environment: Record<string, string>): Config =>
  readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: newFolder(), ...environment });
const starting = (environment: Record<string, string>) => serve(configured(environment), {});

test('a database port without a server is reported', async () => {
  const port = await freePort();
  await expect(starting({ DATABASE_URL: `postgres://x@127.0.0.1:${port}/x` })).rejects.toThrow(
    new RegExp(`^PostgreSQL at 127\\.0\\.0\\.1:${port} \\(DATABASE_URL\\) does not answer: connect ECONNREFUSED`),
  );
});

test('another server at that port, which closes the connection, is reported', async () => {
  const other = createServer((socket) => socket.destroy());
  const port = await listenOnLoopback(other);
  try {
    await expect(starting({ DATABASE_URL: `postgres://x@127.0.0.1:${port}/x` })).rejects.toThrow(
      /^PostgreSQL at .* \(DATABASE_URL\) does not answer: /,
    );
  } finally {
    other.close();
  }
});

test.runIf(STORES.includes('postgres'))('a missing database is reported', async () => {
  const url = new URL(process.env.TEST_DATABASE_URL ?? '');
  url.pathname = '/no_such_database';
  await expect(starting({ DATABASE_URL: url.href })).rejects.toThrow(
    /^PostgreSQL at .* \(DATABASE_URL\) refuses the broker: database "no_such_database" does not exist/,
  );
});

test('an unknown host name is reported', () => {
  const config = configured({ DATABASE_URL: 'postgres://x@nowhere.invalid/x' });
  const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND nowhere.invalid'), { code: 'ENOTFOUND' });
  expect(startFault(new Error('no connection', { cause: unknown }), config)).toMatchObject({
    message:
      'PostgreSQL at nowhere.invalid:5432 (DATABASE_URL) does not answer: getaddrinfo ENOTFOUND nowhere.invalid.',
  });
});

test('a full disk is reported, for SQLite and for files beside it', () => {
  const config = configured({});
  const full = `The disk of ${config.dataFolder} is full. Make room there, then start again.`;
  const file = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
  expect(startFault(file, config)).toMatchObject({ message: full });
  const store = new DatabaseSync(':memory:');
  store.exec('pragma max_page_count = 2');
  let refused: unknown;
  try {
    store.exec('create table a (b); create table c (d); create table e (f)');
  } catch (error) {
    refused = error;
  }
  expect(refused).toBeInstanceOf(Error);
  expect(startFault(refused, config)).toMatchObject({ message: full, cause: refused });
  // As SQLite names it when the store is opened.
  const opened = new Error('The store cannot be opened: disk I/O error.', {
    cause: Object.assign(new Error('disk I/O error'), { errcode: 4_874 }),
  });
  expect(startFault(opened, config)).toMatchObject({ message: full });
  const other = new Error('something else');
  expect(startFault(other, config)).toBe(other);
});

test.runIf(STORES.includes('postgres'))(
  'a new store in a database with another encoding than UTF-8 is rejected',
  async () => {
    const url = await newDatabase({ encoding: 'LATIN1' });
    const refused =
      /^The database of DATABASE_URL stores texts as LATIN1, and the broker needs one that stores UTF-8: /;
    await expect(starting({ DATABASE_URL: url })).rejects.toThrow(refused);
    expect(await query({ DATABASE_URL: url }, 'select from pg_tables where schemaname = current_schema()')).toEqual([]);
  },
);

test('a start whose data folder cannot be created ends the process, including the sandbox platform', async () => {
  const folder = join(newFolder(), 'data');
  symlinkSync('/nowhere/at/all', folder);
  const child = spawn(process.execPath, [BIN, 'serve'], {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE, PORT: '0', AGENT_BROKER_DATA: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let told = '';
  child.stderr.on('data', (chunk) => (told += chunk));
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(told).toContain(`mkdir '${folder}'`);
});

test('a start that fails later does not change the stored port and token of the sandbox', async () => {
  const data = newFolder();
  const first = await startSandboxPlatform(data);
  onTestFinished(() => first.close());
  const known = readFileSync(join(data, 'sandbox.json'), 'utf8');
  // The port is taken, as by the broker that serves this folder.
  const second = await startSandboxPlatform(data);
  onTestFinished(() => second.close());
  expect(second).toMatchObject({ token: first.token });
  expect(second.url).not.toBe(first.url);
  expect(readFileSync(join(data, 'sandbox.json'), 'utf8')).toBe(known);
});
