/**
 * Statements that change or delete rows touch only the rows that they name. Each is run beside rows that differ from the named one in a single column:
 * the same ids in another organisation, another agent, another connection, or a row that has ended.
 */
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { inTransaction, rollback } from '../../broker/store/transaction.ts';
import { furnish, type StoredRow, storedRows } from '../world/full-organisation.ts';
import { startWorld, type World } from '../world/world.ts';
import { CHANGING } from './changing-statements.ts';
import { READING } from './reading-statements.ts';
import { LISTED, type Neighbour, OTHER, type Table } from './statement-case.ts';

const newValues = (columns: readonly (string | undefined)[]) =>
  Object.fromEntries(columns.map((column) => [column ?? '', crypto.randomUUID()]));

const isNothing = (result: unknown): boolean =>
  !result || (Array.isArray(result) && result.length === 0) || (result instanceof Map && result.size === 0);

describe('statements read, change and delete only the rows that they name', () => {
  let world: World;
  let stored: readonly StoredRow[];
  beforeAll(async () => {
    // Both stores run the same statements.
    world = await startWorld('sqlite');
    const { organisation } = await furnish(world, 'alpha');
    stored = await storedRows(world.db, organisation.id);
    // Rows are copied without those that they refer to.
    await sql`pragma foreign_keys = off`.execute(world.db);
  });

  /** Returns the columns of each unique index of a table. */
  const uniqueIn = async (table: Table): Promise<string[][]> => {
    const { rows } = await sql<{ name: string; column: string }>`
      select l.name, i.name as "column" from pragma_index_list(${table}) as l, pragma_index_info(l.name) as i
      where l."unique" = 1 order by l.name, i.seqno`.execute(world.db);
    return Object.values(Object.groupBy(rows, ({ name }) => name)).map((one = []) => one.map(({ column }) => column));
  };

  test.each([...CHANGING, ...READING].map((one) => [`${one.table}: ${one.what}`, one] as const))(
    '%s',
    async (_name, one) => {
      const { table, given, others, run, reads = false } = one;
      const template = stored.find((found) => found.table === table)?.row;
      expect(template, 'a row to copy').toBeDefined();
      const unique = await uniqueIn(table);
      const named: Record<string, unknown> = { ...template, ...given };
      /** Stores these rows and runs the statement for the named one. Returns its result, and which rows were changed or deleted. */
      const tried = async (rows: readonly Neighbour[]): Promise<{ result: unknown; touched: string[] }> => {
        const touched: string[] = [];
        let result: unknown;
        await inTransaction(world.db, async (tx) => {
          await tx.deleteFrom(table).execute();
          for (const { row } of rows)
            await tx
              .insertInto(table)
              .values(row as never)
              .execute();
          const read = async () => {
            const found = await sql<{
              nth: number;
            }>`select rowid as nth, * from ${sql.table(table)} order by rowid`.execute(tx);
            return new Map(found.rows.map((row) => [row.nth, JSON.stringify(row)]));
          };
          const before = [...(await read())];
          result = await run(tx, named as never);
          const after = await read();
          for (const [i, [nth, text]] of before.entries())
            if (after.get(nth) !== text) touched.push(rows[i]?.name ?? '');
          return rollback('tried');
        });
        return { result, touched };
      };
      const beside: Neighbour[] = [];
      for (const [name, value] of Object.entries(others)) {
        const isRow = typeof value === 'object' && value !== null;
        const row = { ...named, ...(isRow ? value : { [name]: value === OTHER ? crypto.randomUUID() : value }) };
        const taken = unique.filter((columns) => columns.every((column) => row[column] === named[column]));
        const free = taken.map((columns) => columns.findLast((column) => !(column in others) && !LISTED.has(column)));
        if (!free.includes(undefined)) beside.push({ name, row: { ...row, ...newValues(free) } });
        else {
          const { result, touched } = await tried([{ name, row }]);
          expect(touched, name).toEqual([]);
          if (reads) expect(isNothing(result), `${name}: ${JSON.stringify(result)}`).toBe(true);
        }
      }
      // The named row comes last, so that a statement for a single row would find another one first.
      const all = await tried([...beside, { name: 'named', row: named }]);
      expect(all.touched).toEqual(reads ? [] : ['named']);
      if (!reads) return;
      const alone = await tried([{ name: 'named', row: named }]);
      expect(isNothing(alone.result)).toBe(false);
      expect(all.result).toEqual(alone.result);
      const without = await tried(beside);
      expect(isNothing(without.result), JSON.stringify(without.result)).toBe(true);
    },
  );
});
