/** Dumps of databases with other contents besides the store, or with the store in another schema, loaded by roles with few privileges. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { postgresPrograms } from '../../bin/postgres-programs.ts';
import { dumpPostgres, loadDump } from '../../broker/store/postgres/backup.ts';
import { query } from '../world/store-contents.ts';
import { newDatabase, newFolder, newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';

/** A role that exists on every server and is not a superuser. */
const ROLE = 'pg_monitor';

const withOptions = (url: string, options: string) => `${url}?options=${encodeURIComponent(options)}`;
const asking = (url: string) => (statement: string) => query({ DATABASE_URL: url }, statement);

async function dumped(url: string) {
  const file = join(newFolder(), 'backup');
  const { rows } = await dumpPostgres(url, file, postgresPrograms);
  return { load: (to: string) => loadDump(to, file, rows, postgresPrograms, async () => {}) };
}

describe.runIf(STORES.includes('postgres'))(`a dump of PostgreSQL${postgresNote}`, () => {
  test('is loaded without other objects of the database, which need a superuser', async () => {
    const url = await newMigratedDatabase();
    const ask = asking(url);
    const extensions = await ask(`select name from pg_available_extensions where name = 'pg_stat_statements'`);
    if (extensions.length > 0) await ask('create extension pg_stat_statements');
    await ask('create publication replicated for all tables');
    await ask('create publication chosen for table agents');
    await ask('create schema monitoring');
    await ask('create table monitoring.kysely_migration (name text)');
    const { load } = await dumped(url);
    const to = await newDatabase();
    await asking(to)(`grant create on schema public to ${ROLE}`);
    await load(withOptions(to, `-c role=${ROLE}`));
    expect(await asking(to)('select pubname from pg_publication')).toEqual([]);
    expect(await asking(to)(`select to_regclass('monitoring.kysely_migration') as other`)).toEqual([{ other: null }]);
  });

  test('can be made by a role that may read only the store’s schema', async () => {
    const url = await newMigratedDatabase();
    const ask = asking(url);
    await ask('create schema "Monitoring 2"');
    await ask('create table "Monitoring 2".samples (id int)');
    await ask(`grant select on all tables in schema public to ${ROLE}`);
    const { load } = await dumped(withOptions(url, `-c role=${ROLE}`));
    await load(await newDatabase());
  });

  test('with the store in another schema is loaded if that schema exists or can be created, and is in the search_path', async () => {
    const url = await newMigratedDatabase();
    await asking(url)('alter schema public rename to broker');
    const { load } = await dumped(withOptions(url, '-c search_path=broker'));
    const searching = (database: string) => withOptions(database, `-c search_path=broker,public -c role=${ROLE}`);
    const there = await newDatabase();
    await asking(there)(`create schema broker authorization ${ROLE}`);
    await load(searching(there));
    const elsewhere = await newDatabase();
    await expect(load(elsewhere)).rejects.toThrow('are in the schema broker, which this role does not search');
    await load(withOptions(elsewhere, '-c search_path=broker'));
    for (const database of [there, elsewhere])
      expect(await asking(database)(`select count(*)::int as tables from broker.kysely_migration_lock`)).toEqual([
        { tables: 1 },
      ]);
  });
});
