import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { batchSize, findAuditRow } from '../../broker/store/audit.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { groupWriter } from '../world/row-groups.ts';
import { auditRow } from '../world/rows.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { copyMigratedStore, newFolder, newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';
import { shared } from '../world/world.ts';

describe('the size of a group', () => {
  test.each(['sqlite', 'postgres'] as const)(
    'is at least 1 and at least 80 % of the waiting rows, up to 64, on %s',
    (dialect) => {
      const sizes = new Set<number>();
      for (let waiting = 1; waiting <= 300; waiting++) {
        const size = batchSize({ dialect }, waiting);
        expect(size).toBeGreaterThanOrEqual(1);
        expect(size).toBeLessThanOrEqual(waiting);
        expect(size).toBeGreaterThanOrEqual(0.8 * Math.min(waiting, 64));
        sizes.add(size);
      }
      if (dialect === 'postgres') expect(sizes.size).toBeLessThanOrEqual(20);
    },
  );
});

const CASES = STORES.flatMap((store) => [[store, 'new', true] as const, [store, 'perhaps there', false] as const]);

describe.each(CASES)(`a group of rows on %s, %s${postgresNote}`, (kind, _, areNew) => {
  const store = shared(async () => {
    const opened =
      kind === 'sqlite'
        ? openSqlite(copyMigratedStore(join(newFolder(), 'store')))
        : openPostgres(await newMigratedDatabase(), { connections: 4, onError: () => {} });
    afterFile(() => opened.close().catch(() => {}));
    return opened;
  });

  test('of any size is stored unchanged', async () => {
    const write = groupWriter(store, areNew);
    for (const size of [1, 2, 3, 20, 64]) {
      const rows = Array.from({ length: size }, (_, at) =>
        auditRow({ path: `/items/${at}`, detail: at % 2 ? null : 'é\t\\N \\.\r\n\\' }),
      );
      expect(await write(rows)).toEqual(new Set(rows.map(({ id }) => id)));
      for (const row of rows) expect(await findAuditRow(store.db, row.organisation_id, row.id)).toEqual(row);
    }
  });

  test('is stored completely or not at all', async () => {
    const rows = [auditRow(), auditRow({ kind: 'nonsense' as 'action' }), auditRow()];
    await expect(groupWriter(store, areNew)(rows)).rejects.toThrow();
    for (const row of rows) expect(await findAuditRow(store.db, row.organisation_id, row.id)).toBeUndefined();
    // The connection still works afterwards.
    expect((await groupWriter(store, areNew)([rows[0]!])).size).toBe(1);
  });

  test('is never part of another transaction that is open at the same time', async () => {
    const [inside, outside] = [auditRow(), auditRow()];
    let written: Promise<unknown> | undefined;
    const failing = store.db.transaction().execute(async (transaction) => {
      await transaction.insertInto('audit_rows').values(inside).execute();
      written = groupWriter(store, areNew)([outside]);
      for (let turn = 0; turn < 20; turn++) await setImmediate();
      throw new Error('rolled back');
    });
    await expect(failing).rejects.toThrow('rolled back');
    await written;
    expect(await findAuditRow(store.db, inside.organisation_id, inside.id)).toBeUndefined();
    expect(await findAuditRow(store.db, outside.organisation_id, outside.id)).toEqual(outside);
  });
});
