/** Separation of organisations in the database: each key begins with the organisation, or docs/scaling.md gives the reason. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { ROOT } from '../world/root.ts';
import { newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';

/** Reads the table below a heading of the page: the code-marked names in the first cell of each row. */
function listedUnder(heading: string): string[] {
  const page = readFileSync(join(ROOT, 'docs', 'scaling.md'), 'utf8');
  const [, rest] = page.split(`${heading}\n`);
  const lines = rest!.split('\n').slice(1);
  const table = lines.slice(
    lines.findIndex((line) => line.startsWith('| ---')) + 1,
    lines.findIndex((line, at) => line === '' && at > 3),
  );
  return table.flatMap((line) => [...line.split('|')[1]!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!)).toSorted();
}

test.runIf(STORES.includes('postgres'))(
  `keys that do not begin with the organisation are those of docs/scaling.md${postgresNote}`,
  async () => {
    const client = new pg.Client({ connectionString: await newMigratedDatabase() });
    await client.connect();
    const { rows } = await client.query<{ name: string; index: string | null; columns: string[]; isPrimary: boolean }>(
      `select c.relname as name, x.relname as index, coalesce(i.indisprimary, false) as "isPrimary",
         array(select a.attname::text from unnest(i.indkey::int2[]) with ordinality k(column_number, place)
           join pg_attribute a on a.attrelid = c.oid and a.attnum = k.column_number order by place) as columns
       from pg_class c left join pg_index i on i.indrelid = c.oid and i.indisunique left join pg_class x on x.oid = i.indexrelid
       where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
         and c.relname not like 'kysely_%'`,
    );
    await client.end();
    const tables = [...new Set(rows.map(({ name }) => name))];
    const byOrganisation = rows.filter(({ isPrimary, columns }) => isPrimary && columns[0] === 'organisation_id');
    expect(byOrganisation.length).toBeGreaterThan(40);
    const others = tables.filter((table) => !byOrganisation.some(({ name }) => name === table));
    expect(others.toSorted()).toEqual(listedUnder('### Tables whose key does not begin with the organisation'));
    const unique = rows.filter(
      ({ name, isPrimary, columns }) => !isPrimary && !others.includes(name) && !columns.includes('organisation_id'),
    );
    expect(unique.flatMap(({ index }) => index ?? []).toSorted()).toEqual(
      listedUnder('### Unique indexes without the organisation'),
    );
  },
);
