import { execFileSync } from 'node:child_process';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sql } from 'kysely';
import pg from 'pg';
import { afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { readBuild } from '../../broker/build.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { type AuditRow, findAuditRow, findOrphanedIntents, putAuditRow } from '../../broker/store/audit.ts';
import {
  findRun,
  forgetInstance,
  heartbeat,
  listInstances,
  registerInstance,
  settleRun,
} from '../../broker/store/instances.ts';
import { FolderInUse } from '../../broker/store/lock.ts';
import { findMeta, putMeta, putMetaIfAbsent } from '../../broker/store/meta.ts';
import { findNewerMigrations, migrate, readableByMigration } from '../../broker/store/migrate.ts';
import { openSqliteAppender } from '../../broker/store/open-appender.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { compareReleases, findReadableBy } from '../../broker/store/readable-by.ts';
import { isRowFault } from '../../broker/store/row-fault.ts';
import { APPENDER_LOG_BYTES } from '../../broker/store/sqlite/connection.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import type { Store } from '../../broker/store/store.ts';
import { isConflict, isStoreOutage } from '../../broker/store/store-fault.ts';
import { expectStatus, send, type TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { groupWriter } from '../world/row-groups.ts';
import { auditRow } from '../world/rows.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { smallDisk } from '../world/small-disk.ts';
import {
  copyMigratedStore,
  newDatabase,
  newFolder,
  newMigratedDatabase,
  postgresNote,
  STORES,
  type StoreKind,
} from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const MIGRATIONS = [
  '0001-foundation',
  '0002-approvals',
  '0003-owners-approve',
  '0004-registration',
  '0005-children',
  '0006-oauth',
  '0007-tools',
  '0008-mcp-clients',
  '0009-halts',
  '0010-fact-versions',
  '0013-rotating-tokens',
  '0015-stored-responses',
  '0016-client-sources',
  '0017-passkey-challenges',
  '0018-governance-versions',
  '0019-derived-receipts',
  '0020-bulk-changes',
  '0023-upstream-tokens',
  '0024-people',
  '0025-person-sessions',
  '0026-sentences',
  '0027-discoverable-passkeys',
  '0028-connection-tests',
  '0030-held-joins',
  '0032-static-keys',
  '0033-connection-patience',
  '0034-notices',
  '0035-standing-approvals',
  '0036-activity-counts',
  '0037-agents-at-a-glance',
  '0038-agent-deeds',
  '0039-decide-in',
  '0040-web-push',
  '0041-receipt-log',
  '0042-restored-stores',
  '0043-releases',
  '0045-audit-sinks',
  '0046-rate-counts',
  '0047-retention',
  '0048-audit-partitions',
  '0049-sinks-in-files',
  '0050-passkey-deciders',
  '0051-sign-ins',
  '0052-governance-applies',
  '0053-agents-owners-and-labels',
  '0054-log-batches',
  '0055-idempotency-instances',
  '0056-platform-entries',
  '0057-restored-counters',
  '0058-pipelines',
  '0059-workloads',
  '0060-workloads-in-files',
  '0061-roles-by-groups',
  '0062-limit-counts',
  '0063-call-marks',
  '0064-corrections',
  '0065-correction-rows',
  '0066-obtaining-browsers',
  '0067-token-makers',
  '0068-told-joins',
  '0069-key-authenticators',
  '0070-retention-seals',
  '0071-refreshed-tokens',
  '0072-former-owners',
  '0073-failing-tokens',
  '0074-approvers',
  '0075-approvers-guard',
  '0076-while-held',
  '0077-token-revocations',
  '0078-listed-person-tokens',
  '0079-listed-authorisations',
];

/** Creates an empty store and returns a function that opens it; on SQLite only one at a time. */
const emptyStore = async (kind: StoreKind): Promise<() => Store> =>
  openerOf(kind, kind === 'sqlite' ? join(newFolder(), 'store') : await newDatabase());

/** The same with all migrations applied: a copy, which takes a fraction of the time of migrating. */
const migratedStore = async (kind: StoreKind): Promise<() => Store> =>
  openerOf(kind, kind === 'sqlite' ? copyMigratedStore(join(newFolder(), 'store')) : await newMigratedDatabase());

function openerOf(kind: StoreKind, place: string): () => Store {
  return () => {
    const store = kind === 'sqlite' ? openSqlite(place) : openPostgres(place, { connections: 4, onError: () => {} });
    afterFile(() => store.close().catch(() => {}));
    return store;
  };
}

/** Tables and their columns, as the database lists them. */
const shapeOf = async (store: Store) =>
  (await store.db.introspection.getTables({ withInternalKyselyTables: false })).map(({ name, columns }) => [
    name,
    columns.map((column) => column.name),
  ]);

const final = (different: Partial<AuditRow> = {}): AuditRow =>
  auditRow({
    state: 'final',
    finished_at: Date.now(),
    result: 'allowed',
    row_hash: 'hash',
    receipt_kid: 'kid',
    receipt: 'receipt',
    ...different,
  });

describe.each(STORES)(`migrations on %s${postgresNote}`, (kind) => {
  test('bring an empty store up to date, once', async () => {
    const store = (await emptyStore(kind))();
    expect(await migrate(store)).toEqual(MIGRATIONS);
    expect(await findReadableBy(store.db)).toBe('0.1.0');
    const shape = await shapeOf(store);
    expect(shape.map(([name]) => name)).toEqual(expect.arrayContaining(['agents', 'audit_rows', 'meta']));
    expect(await migrate(store)).toEqual([]);
    expect(await shapeOf(store)).toEqual(shape);
  });

  test('a store of a newer release is rejected with a readable error, and left unchanged', async () => {
    const store = (await migratedStore(kind))();
    await sql`insert into kysely_migration (name, timestamp) values ('0999-from-the-future', '2099-01-01T00:00:00.000Z')`.execute(
      store.db,
    );
    const shape = await shapeOf(store);
    await expect(migrate(store)).rejects.toThrow(
      /written by a newer version of agent-broker \(it has the migration 0999-from-the-future.*Nothing was changed/,
    );
    expect(await shapeOf(store)).toEqual(shape);
  });

  test('a store to which a newer release only added is accepted from the release that it names on, and by no older one', async () => {
    const open = await emptyStore(kind);
    const store = open();
    await migrate(store, '0.1.0');
    await sql`insert into kysely_migration (name, timestamp) values ('0999-added', '2099-01-01T00:00:00.000Z')`.execute(
      store.db,
    );
    expect(await migrate(store, '0.1.0')).toEqual([]);
    expect(await findNewerMigrations(store)).toEqual(['0999-added']);
    await putMeta(store.db, 'readable_by', '0.2.0');
    await expect(migrate(store, '0.1.9')).rejects.toThrow(
      /has the migration 0999-added.*It can be used by 0\.2\.0 and later, and this is 0\.1\.9\. Nothing was changed/,
    );
    expect(await migrate(store, '0.10.0')).toEqual([]);
  });

  test('each migration from 0042 on names the oldest release that may run on the store, which is not newer than this one', async () => {
    const store = (await migratedStore(kind))();
    for (const [name, readableBy] of Object.entries(readableByMigration(store)))
      if (name >= '0042')
        expect(compareReleases(readableBy ?? '999', readBuild().version), name).toBeLessThanOrEqual(0);
  });

  test('a failed migration is rolled back completely', async () => {
    const store = (await emptyStore(kind))();
    // A table of another program blocks the last migration.
    await sql`create table instances (id text)`.execute(store.db);
    await expect(migrate(store)).rejects.toThrow(/A migration of the store failed.*instances.*rolled back/s);
    expect((await shapeOf(store)).map(([name]) => name)).toEqual(['instances']);
    await sql`drop table instances`.execute(store.db);
    expect(await migrate(store)).toEqual(MIGRATIONS);
  });
});

test.runIf(STORES.includes('postgres'))('of eight processes that start concurrently one migrates', async () => {
  const open = await emptyStore('postgres');
  const applied = await Promise.all(Array.from({ length: 8 }, () => migrate(open())));
  expect(applied.flat()).toEqual(MIGRATIONS);
  const settled = await Promise.all(applied.map((_, at) => putMetaIfAbsent(open().db, 'who', `process ${at}`)));
  expect(new Set(settled).size).toBe(1);
});

test.runIf(STORES.includes('postgres'))(
  `a migration may exceed the statement timeout, and a concurrent start waits for it${postgresNote}`,
  async () => {
    const url = await newDatabase();
    const other = new pg.Client({ connectionString: url });
    await other.connect();
    onTestFinished(() => other.end());
    const store = openPostgres(url, { connections: 3, timeoutMs: 300, onError: () => {} });
    onTestFinished(() => store.close());
    // The advisory lock of migrations (Kysely, PostgresAdapter), as held by another replica that is migrating.
    await other.query('select pg_advisory_lock(3853314791062309107)');
    const migrated = migrate(store);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await other.query('select pg_advisory_unlock(3853314791062309107)');
    expect(await migrated).toEqual(MIGRATIONS);
    await expect(sql`select pg_sleep(1)`.execute(store.db), 'other statements time out').rejects.toThrow();
  },
);

describe.each(STORES)(`the store on %s${postgresNote}`, (kind) => {
  let store: Store;
  beforeAll(async () => {
    store = (await migratedStore(kind))();
  });

  const stored = (row: AuditRow) => findAuditRow(store.db, row.organisation_id, row.id);

  test.each<[string, AuditRow]>([
    ['an unknown state', final({ state: 'done' as 'final' })],
    ['an unknown kind', final({ kind: 'rumour' as 'event' })],
    ['an unknown result', final({ result: 'maybe' as 'held' })],
    ['a final row without a result', final({ result: null })],
    ['a final row without a receipt', final({ receipt: null })],
    ['a final row without its hash', final({ row_hash: null })],
    ['a final row that never finished', final({ finished_at: null })],
  ])('rejects %s as a row fault', async (_what, row) => {
    const error = await groupWriter(store)([row]).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(isRowFault(error)).toBe(true);
    expect(await stored(row)).toBeUndefined();
  });

  test('accepts the twin of each', async () => {
    const rows = [final(), final({ kind: 'event', result: null, receipt: null }), auditRow()];
    expect((await groupWriter(store)(rows)).size).toBe(3);
    for (const row of rows) expect(await stored(row)).toEqual(row);
  });

  test.each([
    ['agents', 'status', `'sleeping'`],
    ['owners', 'role', `'emperor'`],
    ['connections', 'status', `'broken'`],
    ['breakers', 'cause', `'mood'`],
    ['approvals', 'status', `'perhaps'`],
    ['signing_keys', 'use', `'decoration'`],
    ['one_time_tokens', 'kind', `'coupon'`],
    ['registrations', 'status', `'perhaps'`],
  ])('%s.%s rejects values that are not listed', async (table, column, value) => {
    const columns = (await store.db.introspection.getTables()).find(({ name }) => name === table)!.columns;
    const values = columns.map((each) => {
      if (each.name === column) return value;
      if (each.isNullable) return 'null';
      return /int/i.test(each.dataType) ? '0' : /blob|bytea/i.test(each.dataType) ? `''` : `'x'`;
    });
    const insert = sql.raw(`insert into ${table} (${columns.map(({ name }) => name)}) values (${values})`);
    await expect(insert.execute(store.db)).rejects.toThrow(/check constraint/i);
  });

  test('an active agent with a key of its own must have the key stored', async () => {
    const insert = sql`insert into agents (organisation_id, id, agent_id, name, owner_id, agent_type, status, origin, created_at)
      values ('o', 'a', 'agt_x', 'x', 'w', 'key', 'active', 'owner', 0)`;
    await expect(insert.execute(store.db)).rejects.toThrow(/agents_bound/);
  });

  test('foreign keys are enforced', async () => {
    const insert = sql`insert into owners (organisation_id, id, email, role, origin, created_at) values ('nobody', 'o', 'o@acme.example', 'admin', 'added', 0)`;
    await expect(insert.execute(store.db)).rejects.toThrow(/foreign key/i);
  });

  test('writing a final row again changes nothing, and reports that it existed', async () => {
    const write = groupWriter(store);
    const row = final();
    expect((await write([row])).has(row.id)).toBe(true);
    const other = final();
    const again = { ...row, reason: 'rewritten', receipt: 'another receipt' };
    expect([...(await write([again, other]))]).toEqual([other.id]);
    expect(await stored(row)).toEqual(row);
    expect(await putAuditRow(store.db, again)).toBe(false);
    expect(await stored(row)).toEqual(row);
  });

  test('an intent is finalised once, by the first writer', async () => {
    const write = groupWriter(store);
    const intent = auditRow();
    expect((await write([intent])).size).toBe(1);
    // An intent may be written again, as in a retry after its answer was lost.
    expect((await write([intent])).size).toBe(1);
    const outcomes = Array.from({ length: 8 }, (_, at) =>
      final({ ...intent, state: 'final', finished_at: 1, result: 'allowed', row_hash: 'h', receipt: `by ${at}` }),
    );
    const written = await Promise.all(outcomes.map((row) => write([row])));
    expect(written.filter((ids) => ids.size === 1)).toHaveLength(1);
    const winner = outcomes[written.findIndex((ids) => ids.size === 1)]!;
    expect(await stored(intent)).toMatchObject({ state: 'final', receipt: winner.receipt });
    expect((await write([intent])).size, 'a final row becomes no intent again').toBe(0);
    expect(await stored(intent)).toMatchObject({ state: 'final' });
  });

  test('an outcome is stored as it was signed, whatever its intent contained', async () => {
    const write = groupWriter(store);
    for (const put of [(row: AuditRow) => write([row]), (row: AuditRow) => putAuditRow(store.db, row)]) {
      const intent = auditRow();
      await put(intent);
      const { organisation_id, id } = intent;
      // Every column has another value than in the intent.
      const outcome: AuditRow = {
        ...{ organisation_id, id, state: 'final', kind: 'event', created_at: 1, finished_at: 2 },
        ...{ agent_id: 'a', agent_public_id: 'b', platform_id: 'c', connection_id: 'd', scope: 'e', method: 'GET' },
        ...{
          path: '/f',
          result: 'errored',
          reason: 'g',
          detail: 'h',
          decision: '{}',
          approval_id: 'i',
          session_id: 'j',
        },
        ...{ agent_reason: 'k', violating: '[]', upstream_status: 200, flags: '{}', pii: '{}', correlation_id: 'l' },
        ...{ row_hash: 'm', receipt_kid: 'n', receipt: 'o', receipt_format: 1, receipt_issuer: 'p', instance_id: 'q' },
      };
      await put(outcome);
      expect(await stored(intent)).toEqual(outcome);
    }
  });

  test('rows with the same id in two organisations are separate', async () => {
    const row = final();
    await groupWriter(store)([row, { ...row, organisation_id: 'other', reason: 'theirs' }]);
    expect(await stored(row)).toEqual(row);
    expect(await findAuditRow(store.db, 'other', row.id)).toMatchObject({ reason: 'theirs' });
  });

  test('text is returned unchanged, and times as numbers', async () => {
    const row = final({ detail: 'ä 中 🙂 \' " \\ %s $1 \u202e', created_at: 2 ** 52 });
    await groupWriter(store)([row]);
    expect(await stored(row)).toEqual(row);
  });

  describe('the run of the processes on a store', () => {
    const starting = () => ({ id: uuidv4(), startedAt: 1_000 });
    const run = async () => (await findRun(store.db)).id;
    const forgetAll = async () => {
      for (const { id } of await listInstances(store.db)) await forgetInstance(store.db, id);
    };
    beforeEach(forgetAll);
    afterEach(forgetAll);

    test('of processes that start together on an empty list the first begins it, and the others join it', async () => {
      const all = Array.from({ length: 10 }, starting);
      const found = await Promise.all(all.map((one) => registerInstance(store.db, one)));
      const first = all[found.findIndex(({ member }) => member)]!;
      expect(found.filter(({ member }) => member)).toHaveLength(1);
      expect(await run()).toBe(first.id);
      await heartbeat(store.db, first.id, 2_000);
      for (const [at, one] of all.entries())
        if (one !== first) expect(await settleRun(store.db, one, found[at]!.seen, { begin: false })).toBe(true);
      expect(await findRun(store.db)).toEqual({ id: first.id });
    });

    test.each<[string, (member: string) => Promise<void>]>([
      ['sent a heartbeat', (member) => heartbeat(store.db, member, 1_000)],
      ['left the list', async (member) => void (await forgetInstance(store.db, member))],
    ])('continues with a starting process if a member %s since', async (_what, live) => {
      const [member, next] = [starting(), starting()];
      await registerInstance(store.db, member);
      const { seen } = await registerInstance(store.db, next);
      expect(await settleRun(store.db, next, seen, { begin: false })).toBe(false);
      await live(member.id);
      expect(await settleRun(store.db, next, seen, { begin: true })).toBe(true);
      expect(await run()).toBe(member.id);
    });

    test('ends when no member is alive, however many processes have started, and all of these join one new run', async () => {
      const dead = starting();
      await registerInstance(store.db, dead);
      const all = Array.from({ length: 5 }, () => ({ id: uuidv4(), startedAt: 5_000 }));
      const seen = new Map<string, ReadonlyMap<string, number>>();
      for (const one of all) seen.set(one.id, (await registerInstance(store.db, one)).seen);
      for (const { id } of all) await heartbeat(store.db, id, 6_000);
      for (const one of all) expect(await settleRun(store.db, one, seen.get(one.id)!, { begin: false })).toBe(false);
      expect(await run()).toBe(dead.id);
      await Promise.all(all.map((one) => settleRun(store.db, one, seen.get(one.id)!, { begin: true })));
      const { id, previous } = await findRun(store.db);
      expect(all.map((one) => one.id)).toContain(id);
      expect(previous).toEqual({ id: dead.id, since: 5_000 });
      await forgetAll();
      const last = starting();
      expect((await registerInstance(store.db, last)).member).toBe(true);
      expect(await findRun(store.db)).toEqual({ id: last.id });
    });
  });

  test('an intent is orphaned when its process is not registered', async () => {
    const [mine, theirs] = [uuidv4(), uuidv4()];
    await heartbeat(store.db, mine, 1_000);
    await heartbeat(store.db, theirs, 1_000);
    const intent = auditRow({ instance_id: theirs });
    await groupWriter(store)([intent, auditRow({ instance_id: mine })]);
    const orphans = async () => (await findOrphanedIntents(store.db, 1_000)).filter((row) => row.id === intent.id);
    expect(await orphans()).toEqual([]);
    // A heartbeat since the list was read.
    await heartbeat(store.db, theirs, 1_000);
    await forgetInstance(store.db, theirs, 1_000);
    expect(await orphans()).toEqual([]);
    const { seen_at } = (await listInstances(store.db)).find(({ id }) => id === theirs)!;
    expect(seen_at).toBe(1_001);
    await forgetInstance(store.db, theirs, seen_at);
    expect(await orphans()).toEqual([intent]);
  });

  test('a statement with too many parameters for the store fails with a row fault, which is not retried', async () => {
    const ids = Array.from({ length: 70_000 }, (_, i) => `${i}`);
    const asked = store.db.selectFrom('organisations').select('id').where('id', 'in', ids).execute();
    const error = await asked.catch((thrown: unknown) => thrown);
    expect(isRowFault(error), String(error)).toBe(true);
  });

  test('a failed transaction is rolled back', async () => {
    const row = final();
    const failing = store.db.transaction().execute(async (db) => {
      await putAuditRow(db, row);
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(await stored(row)).toBeUndefined();
    expect(await findMeta(store.db, 'nothing')).toBeUndefined();
  });
});

describe('the embedded store', () => {
  test('ST-03 commits durably: WAL, synchronous=FULL, foreign keys', async () => {
    const folder = join(newFolder(), 'store');
    const store = openSqlite(folder);
    onTestFinished(() => store.close());
    const pragma = async (name: string) =>
      Object.values((await sql.raw<Record<string, unknown>>(`pragma ${name}`).execute(store.db)).rows[0]!)[0];
    expect(await pragma('journal_mode')).toBe('wal');
    expect(await pragma('synchronous')).toBe(2);
    expect(await pragma('foreign_keys')).toBe(1);
    expect(await pragma('busy_timeout')).toBe(5_000);
  });

  test('the connection that appends rows checkpoints long before the one of the main thread', async () => {
    const folder = copyMigratedStore(join(newFolder(), 'store'));
    const store = openSqlite(folder);
    onTestFinished(() => store.close());
    const logBytes = () => statSync(join(folder, 'broker.db-wal')).size;
    const put = (name: string) =>
      store.db
        .insertInto('meta')
        .values({ name, value: 'x'.repeat(1_000_000) })
        .execute();
    for (let i = 0; i < 20; i++) await put(`large ${i}`);
    // After a checkpoint the log would be overwritten from its start, and not grow.
    expect(logBytes()).toBeGreaterThan(20_000_000);
    expect(logBytes()).toBeGreaterThan(APPENDER_LOG_BYTES);
    const appender = openSqliteAppender(join(folder, 'broker.db'));
    onTestFinished(() => appender.close());
    const insert = 'insert into meta (name, value) values (?, ?) returning name';
    await appender.append({ name: 'meta', sql: insert, rest: [], copy: '' }, [['one', 'row']], true);
    const before = logBytes();
    for (let i = 0; i < 4; i++) await put(`after ${i}`);
    expect(logBytes()).toBe(before);
  });

  test('other connections read committed data only', async () => {
    const store = openSqlite(copyMigratedStore(join(newFolder(), 'store')));
    onTestFinished(() => store.close());
    const path = (await sql<{ file: string }>`select file from pragma_database_list`.execute(store.db)).rows[0]!.file;
    // A second connection, as the command line and the benchmark use.
    const outside = new DatabaseSync(path, { readOnly: true });
    onTestFinished(() => outside.close());
    const count = () => outside.prepare(`select count(*) as count from meta where name = 'a'`).get()!.count;
    await store.db.transaction().execute(async (db) => {
      await putMetaIfAbsent(db, 'a', 'b');
      expect(count()).toBe(0);
    });
    expect(count()).toBe(1);
  });

  test('ST-04 only one server can open a folder', async () => {
    const folder = join(newFolder(), 'store');
    const first = openSqlite(folder);
    expect(() => openSqlite(folder)).toThrow(FolderInUse);
    await first.close();
    await openSqlite(folder).close();
  });

  test('a file that is not a database is rejected with a readable error, and the folder is unlocked', async () => {
    const folder = join(newFolder(), 'store');
    await openSqlite(folder).close();
    writeFileSync(
      join(folder, 'broker.db'),
      'this is not a database, but it is long enough to be looked at'.repeat(50),
    );
    expect(() => openSqlite(folder)).toThrow(/The store .*broker\.db cannot be opened: file is not a database/);
    expect(() => openSqlite(folder)).toThrow(/file is not a database/);
  });
});

test('an error that ends a transaction is reported itself, not as a failed rollback', async () => {
  const store = openSqlite(copyMigratedStore(join(newFolder(), 'store')));
  afterFile(() => store.close());
  const put = sql`insert or rollback into meta (name, value) values ('a', 'b')`;
  const twice = store.db.transaction().execute(async (tx) => {
    await put.execute(tx);
    await put.execute(tx);
  });
  await expect(twice).rejects.toThrow(/UNIQUE constraint failed/);
  expect((await store.db.selectFrom('meta').selectAll().execute()).filter(({ name }) => name === 'a')).toEqual([]);
});

test('an unreachable PostgreSQL is named in the error of the start, and outages are classified by code, not by message', async () => {
  const url = 'postgres://broker:CANARY@127.0.0.1:1/broker';
  const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: newFolder(), DATABASE_URL: url });
  const refused = await serve(config).then(
    () => '',
    (error: Error) => error.message,
  );
  expect(refused).toMatch(/^PostgreSQL at 127\.0\.0\.1:1 \(DATABASE_URL\) does not answer: .*ECONNREFUSED/);
  expect(refused).not.toContain('CANARY');
  const silent = createServer();
  const port = await listenOnLoopback(silent);
  const store = openPostgres(`postgres://x@127.0.0.1:${port}/x`, { connections: 3, onError: () => {} });
  onTestFinished(() => store.close());
  const fault = await sql`select 1`.execute(store.db).catch((error: unknown) => error);
  expect(isStoreOutage(fault), String(fault)).toBe(true);
  expect(isStoreOutage(new Error('Query read timeout'))).toBe(false);
  for (const code of ['ENOTFOUND', 'ENETUNREACH', 'EADDRNOTAVAIL', 'EMFILE', '55P03', '25P03', '28P01', '3D000'])
    expect(isStoreOutage(Object.assign(new Error(code), { code })), code).toBe(true);
  for (const code of ['22P02', '23505', 'EACCES', 'ENOENT'])
    expect(isStoreOutage(Object.assign(new Error(code), { code })), code).toBe(false);
  expect(isConflict(Object.assign(new Error('deadlock detected'), { code: '40P01' }))).toBe(true);
  expect(isConflict(Object.assign(new Error('no'), { code: '403' }))).toBe(false);
});

describe.runIf(STORES.includes('postgres'))(`a PostgreSQL that loses commits${postgresNote}`, () => {
  test.each([
    ['off', true],
    ['on', false],
  ])('synchronous_commit = %s: the start warns: %s', async (value, warns) => {
    const url = await newMigratedDatabase();
    const store = openPostgres(url, { connections: 3, onError: () => {} });
    const name = sql.raw(new URL(url).pathname.slice(1));
    await sql`alter database ${name} set synchronous_commit = ${sql.raw(value)}`.execute(store.db);
    await store.close();
    const child = spawnBroker({ PORT: '0', LOG_LEVEL: 'warn', AGENT_BROKER_DATA: newFolder(), DATABASE_URL: url });
    onTestFinished(() => child.signal('SIGKILL'));
    expect(await child.serve(), child.output().stderr).toBeDefined();
    expect(child.output().stderr.includes('synchronous_commit = off')).toBe(warns);
  });
});

describe('a full disk', () => {
  const folder = smallDisk(12 * 1024 * 1024);

  test.runIf(folder)(
    'ST-02 nothing is sent that cannot be recorded, and calls succeed once there is space again',
    async () => {
      const world = await startWorld('sqlite', { AGENT_BROKER_DATA: folder! });
      const organisation = await world.organisation();
      await organisation.platform();
      const agent: TestAgent = await organisation.agent();
      const change = (item: number | string) => ({
        platform: 'demo',
        endpoint: `/items/${item}`,
        method: 'PATCH',
        scope: 'demo:write',
        data: { a: 1 },
      });
      const first = await expectStatus(200, agent.act(change('first')));
      const filler = join(folder!, 'filler');
      // dd fails when the disk is full, as intended.
      expect(() => execFileSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096'], { stdio: 'ignore' })).toThrow();
      let full = await agent.act(change('fill'));
      let last: number | string = 'fill';
      for (let more = 0; full.status === 200 && more < 500; more++) {
        last = more;
        full = await agent.act(change(more));
      }
      expect([full.status, full.body.error]).toEqual([503, 'audit_unavailable']);
      // The disk may have had space for the intent, but not for the outcome.
      const wasSent = world.upstream.seen.some(({ target }) => target.endsWith(`/items/${last}`));
      world.upstream.seen.length = 0;
      const again = await agent.act(change('full'));
      expect([again.status, again.body.error, again.headers.get('retry-after')]).toEqual([
        503,
        'audit_unavailable',
        '5',
      ]);
      expect(again.body.detail).toContain('nothing was sent');
      expect(world.upstream.seen).toEqual([]);
      // Recorded rows can still be read.
      expect((await agent.get(`/v1/audit/${first.body._meta.audit_id}/receipt`)).status).toBe(200);
      const health = await send(`${world.running.baseUrl}/health`, {});
      expect([health.status, health.body.status]).toEqual([503, 'unavailable']);
      rmSync(filler);
      await expectStatus(200, agent.act(change('room')));
      await world.running.services.recorder.retryLate();
      const rowsOf = (item: number | string) =>
        world.db.selectFrom('audit_rows').selectAll().where('path', '=', `/items/${item}`).execute();
      // Rows of calls that were refused, of the first one that failed and of later ones.
      const refused = { state: 'final', result: 'errored', reason: 'audit_unavailable' };
      expect(await rowsOf('full')).toMatchObject([refused]);
      expect(await rowsOf(last)).toMatchObject([wasSent ? { state: 'final', result: 'allowed' } : refused]);
      expect((await send(`${world.running.baseUrl}/health`, {})).status).toBe(200);
      await world.restart();
      expect((await agent.act(change('after'))).status).toBe(200);
    },
  );

  test.runIf(folder)('a start reports which disk is full', async () => {
    const small = smallDisk(1024 * 1024)!;
    expect(() => execFileSync('dd', ['if=/dev/zero', `of=${join(small, 'filler')}`], { stdio: 'ignore' })).toThrow();
    const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: join(small, 'data') });
    await expect(serve(config)).rejects.toThrow(`The disk of ${config.dataFolder} is full.`);
  });

  test.skipIf(folder)(
    'ST-02 is skipped: no small file system can be mounted here (Linux and root are needed)',
    () => {},
  );
});
