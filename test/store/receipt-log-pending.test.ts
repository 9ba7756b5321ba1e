/** Rows that wait for their index in the receipt log: on PostgreSQL the rows of one statement share one entry. */
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { AuditRow } from '../../broker/store/audit.ts';
import { countPending, hasPending, takePending } from '../../broker/store/log-pending.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { groupWriter } from '../world/row-groups.ts';
import { auditRow } from '../world/rows.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';

describe.each(STORES)(`rows that wait for the receipt log on %s${postgresNote}`, (kind) => {
  const open = async () => {
    const store =
      kind === 'sqlite'
        ? openSqlite(join(newFolder(), 'store'))
        : openPostgres(await newDatabase(), { connections: 4, onError: () => {} });
    afterFile(() => store.close());
    await migrate(store);
    return store;
  };
  const hashOf = (at: number) => at.toString(16).padStart(64, '0');
  const ended = (at: number) =>
    ({
      state: 'final',
      result: 'allowed',
      finished_at: at,
      row_hash: hashOf(at),
      receipt_kid: 'k',
      receipt: 'r',
    }) as const;
  const final = (at: number, different: Partial<AuditRow> = {}) => auditRow({ ...ended(at), ...different });
  type Taken = Awaited<ReturnType<typeof takePending>>['pending'];
  const pairs = (taken: Taken) =>
    taken.flatMap(({ rows, ids, row_hashes, organisation_id }) =>
      Array.from({ length: rows }, (_, at) => [
        organisation_id,
        ids.slice(at * 36, (at + 1) * 36),
        row_hashes.slice(at * 64, (at + 1) * 64),
      ]),
    );
  const placed = ({ organisation_id, id, row_hash }: AuditRow) => [organisation_id, id, row_hash];

  test('each row is taken once, by organisation, with its hash and finish time', async () => {
    const store = await open();
    const rows = [7, 3, 5].map((at) => final(at));
    const others = [9, 8].map((at) => final(at, { organisation_id: 'other' }));
    const begun = auditRow();
    await groupWriter(store, true)([...rows, ...others, begun]);
    expect(await countPending(store.db, 'acme')).toEqual({ rows: 3, since: 3 });
    expect(await countPending(store.db, 'other')).toEqual({ rows: 2, since: 8 });
    expect(await countPending(store.db, 'nobody')).toEqual({ rows: 0, since: null });
    const { pending, isFull } = await takePending(store.db, store, 100);
    expect(isFull).toBe(false);
    expect(pairs(pending).toSorted()).toEqual([...rows, ...others].map(placed).toSorted());
    expect(Math.max(...pending.filter((one) => one.organisation_id === 'acme').map((one) => one.last_at))).toBe(7);
    // On PostgreSQL one entry per statement and organisation.
    expect(pending).toHaveLength(kind === 'postgres' ? 2 : 5);
    expect(await hasPending(store.db)).toBe(false);

    // Only the intent that becomes final now; the final rows that are written again are not.
    await groupWriter(store, false)([{ ...begun, ...ended(11) }, ...rows]);
    expect(pairs((await takePending(store.db, store, 100)).pending)).toEqual([['acme', begun.id, hashOf(11)]]);
  });

  test('rows are taken up to a limit at a time, those from before an upgrade first', async () => {
    const store = await open();
    const before = [1, 2, 3].map((at) => final(at));
    await store.db
      .insertInto('log_pending')
      .values(
        before.map(({ organisation_id, id, row_hash, finished_at }) => ({
          organisation_id,
          row_id: id,
          row_hash: row_hash ?? '',
          finished_at: finished_at ?? 0,
        })),
      )
      .execute();
    const later = [4, 5].map((at) => final(at));
    for (const row of later) await groupWriter(store, true)([row]);
    expect(await countPending(store.db, 'acme')).toEqual({ rows: 5, since: 1 });
    const taken: unknown[][] = [];
    const sizes: number[] = [];
    for (let more = true; more; ) {
      const { pending, isFull } = await takePending(store.db, store, 2);
      taken.push(...pairs(pending));
      sizes.push(pending.length);
      more = isFull;
    }
    expect(taken).toEqual([...before, ...later].map(placed));
    expect(sizes).toEqual([2, 2, 1]);
  });
});
