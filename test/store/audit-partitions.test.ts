/** Monthly partitions of the audit on PostgreSQL: the upgrade, creating months ahead, and dropping empty ones. */
import { setTimeout as pause } from 'node:timers/promises';
import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import type { Appender } from '../../broker/store/appender.ts';
import { auditStatement, findAuditRow, putAuditRow } from '../../broker/store/audit.ts';
import { AUDIT_COLUMNS, type AuditTable } from '../../broker/store/audit-columns.ts';
import {
  dropEmptyAuditPartitions,
  listAuditPartitions,
  makeAuditPartitions,
} from '../../broker/store/audit-partitions.ts';
import { migrate, migratorOf } from '../../broker/store/migrate.ts';
import { auditPartitions } from '../../broker/store/migrations/0048-audit-partitions.ts';
import { openAppender } from '../../broker/store/open-appender.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import type { Store } from '../../broker/store/store.ts';
import { auditRow } from '../world/rows.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';

const DAY_MS = 24 * 3600 * 1000;
const ORGANISATION = '00000000-0000-4000-8000-000000000001';

const final = (at: number, different: Partial<AuditTable> = {}): AuditTable =>
  auditRow({
    organisation_id: ORGANISATION,
    id: uuidv7(at),
    created_at: at,
    state: 'final',
    finished_at: at,
    result: 'allowed',
    row_hash: 'hash',
    receipt_kid: 'kid',
    receipt: 'receipt',
    ...different,
  });
const purgeEvent = (at: number) => final(at, { kind: 'event', reason: 'audit_purged', result: null });

describe.runIf(STORES.includes('postgres'))(`partitions of the audit on postgres${postgresNote}`, () => {
  let url: string;
  let store: Store;
  const open = () => {
    const opened = openPostgres(url, { connections: 4, onError: () => {} });
    afterFile(() => opened.close());
    return opened;
  };
  const appending = () => {
    const appender = openAppender(store.appendTo);
    afterFile(() => appender.close());
    return appender;
  };
  const append = async (appender: Appender, row: AuditTable, isNew: boolean) => {
    const values = AUDIT_COLUMNS.map((column) => row[column]);
    expect(await appender.append(auditStatement(store.db, 1), [values], isNew)).toEqual([row.id]);
  };
  // Rows in log_pending from before the per-statement triggers, and those of later statements in log_batches.
  const logged = async () => [
    ...(await store.db.selectFrom('log_pending').select('row_id').execute()).map((r) => r.row_id),
    ...(await store.db.selectFrom('log_batches').select('ids').execute()).flatMap((r) => r.ids.match(/.{36}/g) ?? []),
  ];
  const partitionOf = async (id: string) =>
    (
      await sql<{ name: string }>`select tableoid::regclass::text as name from audit_rows where id = ${id}`.execute(
        store.db,
      )
    ).rows[0]?.name;
  const names = async () => (await listAuditPartitions(store.db)).map(({ name }) => name);

  describe('an upgrade', () => {
    const rows = Array.from({ length: 200 }, (_, at) => final(Date.now() - at * DAY_MS));
    const fileOf = async (table: string) =>
      (await sql<{ file: number }>`select pg_relation_filenode(${table}::regclass) as file`.execute(store.db)).rows[0]
        ?.file;
    beforeEach(async () => {
      url = await newDatabase();
      store = open();
      await migratorOf(store).migrateTo('0047-retention');
      await store.db.insertInto('audit_rows').values(rows).execute();
    });

    test('makes the existing table the first partition without rewriting it, while others write', async () => {
      const appender = appending();
      const intent = { ...final(Date.now()), state: 'intent', result: null, row_hash: null } as const;
      await append(appender, intent, false);
      await append(appender, final(Date.now()), true);
      const file = await fileOf('audit_rows');
      const writing = vi.fn(async () => await append(appender, final(Date.now()), true));
      const writer = setInterval(() => void writing().catch(() => {}), 5);
      expect(await migrate(store)).toContain('0048-audit-partitions');
      clearInterval(writer);
      await Promise.all(writing.mock.results.map(({ value }) => value));
      expect(await fileOf('audit_rows_before')).toBe(file);
      expect(await names()).toEqual(['audit_rows_before']);

      // Statements prepared by the previous release still work, and each row is in the log once.
      await append(appender, { ...intent, state: 'final', result: 'allowed', row_hash: 'late' }, false);
      const late = final(Date.now());
      await append(appender, late, true);
      await expect(append(appender, late, true)).rejects.toThrow();
      expect((await findAuditRow(store.db, ORGANISATION, intent.id))?.row_hash).toBe('late');
      const inLog = await logged();
      expect(inLog.toSorted()).toEqual([...new Set(inLog)].toSorted());
      expect(inLog).toHaveLength(rows.length + writing.mock.calls.length + 3);
      expect(inLog).toEqual(expect.arrayContaining([intent.id, late.id]));
      const checks = await sql`select 1 from pg_constraint where conname = 'audit_rows_bound'`.execute(store.db);
      expect(checks.rows).toEqual([]);
    });

    test('by concurrently starting brokers happens once; rows of a clock that was ahead move the bound', async () => {
      const ahead = final(Date.now() + 400 * DAY_MS);
      await putAuditRow(store.db, ahead);
      const applied = await Promise.all([migrate(store), migrate(open()), migrate(open())]);
      expect(applied.flat().filter((name) => name === '0048-audit-partitions')).toHaveLength(1);
      expect(await partitionOf(ahead.id)).toBe('audit_rows_before');
      await makeAuditPartitions(store, Date.now());
      expect(await names()).toEqual(['audit_rows_before']);
    });

    test('that another process makes concurrently leaves no bound on the table', async () => {
      let second: Promise<string[]> | undefined;
      await open()
        .db.transaction()
        .execute(async (tx) => {
          await sql`lock table audit_rows in access exclusive mode`.execute(tx);
          // This migration sees the table before the partitioning, and waits for its lock.
          second = migrate(store);
          await pause(1_000);
          await auditPartitions(tx as unknown as Kysely<unknown>, 'postgres');
          await sql`insert into kysely_migration (name, timestamp)
            values ('0048-audit-partitions', ${new Date().toISOString()})`.execute(tx);
        });
      expect(await second).not.toContain('0048-audit-partitions');
      await putAuditRow(store.db, final(Date.now() + 400 * DAY_MS));
    });

    test('retries with a short lock timeout while there is a reader, so that writers are not blocked', async () => {
      const reader = new pg.Client({ connectionString: url });
      await reader.connect();
      await reader.query('begin; select 1 from audit_rows limit 1');
      const migrating = migrate(store);
      // Longer than one attempt.
      await pause(2_500);
      await putAuditRow(open().db, final(Date.now()));
      await reader.end();
      expect(await migrating).toContain('0048-audit-partitions');
    });

    test('that fails leaves no bound on the table', async () => {
      await sql`create table audit_rows_default ()`.execute(store.db);
      await expect(migrate(store)).rejects.toThrow(/audit_rows_default/);
      await putAuditRow(store.db, final(Date.now() + 400 * DAY_MS));
    });
  });

  describe('months', () => {
    const NOW = Date.parse('2035-03-20T00:00:00Z');
    beforeEach(async () => {
      url = await newMigratedDatabase();
      store = open();
    });
    const drop = (now: number) => dropEmptyAuditPartitions(store, { now, holder: 'one' });

    test('are created a month ahead, once by concurrent processes, and ids of other times go to the default partition', async () => {
      await Promise.all([NOW, NOW, NOW].map((now) => makeAuditPartitions(store, now)));
      expect(await names()).toEqual(['audit_rows_before', 'audit_rows_2035_03', 'audit_rows_2035_04']);
      const wanted = {
        '2035-03-01T00:00:00.000Z': 'audit_rows_2035_03',
        '2035-03-31T23:59:59.999Z': 'audit_rows_2035_03',
        '2035-04-30T00:00:00.000Z': 'audit_rows_2035_04',
        '2035-05-01T00:00:00.000Z': 'audit_rows_default',
        '2034-12-31T00:00:00.000Z': 'audit_rows_default',
        '2020-01-01T00:00:00.000Z': 'audit_rows_before',
      };
      for (const [at, partition] of Object.entries(wanted)) {
        const row = final(Date.parse(at));
        await putAuditRow(store.db, row);
        expect([at, await partitionOf(row.id)]).toEqual([at, partition]);
      }
    });

    test('get the rows of their month from the default partition', async () => {
      const stray = final(NOW);
      const other = final(NOW + 300 * DAY_MS);
      for (const row of [stray, other]) await putAuditRow(store.db, row);
      await makeAuditPartitions(store, NOW);
      expect(await partitionOf(stray.id)).toBe('audit_rows_2035_03');
      expect(await partitionOf(other.id)).toBe('audit_rows_default');
      expect((await logged()).toSorted()).toEqual([stray.id, other.id].toSorted());
    });

    test('are dropped when only events about deletions are left, which are kept', async () => {
      await makeAuditPartitions(store, NOW);
      const row = final(NOW);
      const event = purgeEvent(NOW);
      for (const one of [row, event]) await putAuditRow(store.db, one);
      const later = NOW + 50 * DAY_MS;
      expect(await drop(later)).toEqual(['audit_rows_before']);
      await store.db.deleteFrom('audit_rows').where('id', '=', row.id).execute();
      expect(await drop(later)).toEqual([]);
      // April is empty, but too recent.
      expect(await drop(later + 3_600_000)).toEqual(['audit_rows_2035_03']);
      expect(await findAuditRow(store.db, ORGANISATION, event.id)).toMatchObject({ id: event.id, row_hash: 'hash' });
      expect(await partitionOf(event.id)).toBe('audit_rows_default');
      expect((await logged()).toSorted()).toEqual([row.id, event.id].toSorted());
    });

    test('are not created or dropped while a long transaction reads them', async () => {
      const reader = new pg.Client({ connectionString: url });
      await reader.connect();
      await reader.query('begin; select 1 from audit_rows limit 1');
      await makeAuditPartitions(store, NOW);
      expect(await names()).toEqual(['audit_rows_before']);
      expect(await drop(NOW)).toEqual([]);
      await reader.end();
      await makeAuditPartitions(store, NOW);
      expect(await names()).toHaveLength(3);
      expect(await drop(NOW + 3_600_000)).toEqual(['audit_rows_before']);
    });
  });
});
