/**
 * The oldest release that may run on a store. An expanding migration only adds, and leaves the store readable by the previous release; what only
 * that one needs is removed (contracted) one release later, in a separate step: store/contract.ts.
 */
import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import { findMeta, putMeta } from './meta.ts';
import type { Db, Store } from './store.ts';

const READABLE_BY = 'readable_by';

/**
 * `prepare`: long-running work before the migration, outside of its transaction, while calls go on. Returns a function that undoes it when the
 * migration fails.
 */
export type Step = Migration & { readableBy?: string; prepare?: (store: Store) => Promise<() => Promise<void>> };

/** Returns the oldest release that may run on the store; undefined: no migration has set it. */
export async function findReadableBy(db: Db): Promise<string | undefined> {
  return await findMeta(db, READABLE_BY);
}

/** Wraps the steps so that each stores, in its own transaction, the oldest release that may run on the store from then on. */
export const saying = (steps: Readonly<Record<string, Step>>): Record<string, Migration> =>
  Object.fromEntries(
    Object.entries(steps).map(([name, { up, readableBy }]) => [
      name,
      {
        // biome-ignore lint/suspicious/noExplicitAny: Kysely's own type of a migration's database.
        up: async (db: Kysely<any>) => {
          await up(db);
          const before = readableBy === undefined ? undefined : await findReadableBy(db);
          if (readableBy !== undefined && (before === undefined || compareReleases(before, readableBy) < 0))
            await putMeta(db, READABLE_BY, readableBy);
        },
      },
    ]),
  );

/** Compares releases; below 0: `one` is older. Only the numbers of a pre-release count. */
export function compareReleases(one: string, other: string): number {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  for (let at = 0; at < 3; at++) if (a[at] !== b[at]) return (a[at] ?? 0) - (b[at] ?? 0);
  return 0;
}

const numbersOf = (release: string): number[] => (/^\d+(?:\.\d+)*/.exec(release)?.[0] ?? '0').split('.').map(Number);
