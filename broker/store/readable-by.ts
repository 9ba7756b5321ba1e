/**
 * The oldest release that may run on a store. A migration that only adds (expands) leaves the store readable by the release before it; what that one
 * still needs is taken away (contracted) one release later, by itself: store/contract.ts.
 */
import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import { findMeta, putMeta } from './meta.ts';
import type { Db, Store } from './store.ts';

const READABLE_BY = 'readable_by';

/**
 * `prepare`: what takes long, and is done before the migration, outside of its transaction, beside the calls. Answers how to undo it when the
 * migration fails.
 */
export type Step = Migration & { readableBy?: string; prepare?: (store: Store) => Promise<() => Promise<void>> };

/** Undefined: no migration has said so. */
export async function findReadableBy(db: Db): Promise<string | undefined> {
  return await findMeta(db, READABLE_BY);
}

/** The same steps, each of which says in its own transaction which release may run on the store from then on. */
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

/** Below 0: `one` is the older one. Of a pre-release only the numbers count. */
export function compareReleases(one: string, other: string): number {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  for (let at = 0; at < 3; at++) if (a[at] !== b[at]) return (a[at] ?? 0) - (b[at] ?? 0);
  return 0;
}

const numbersOf = (release: string): number[] => (/^\d+(?:\.\d+)*/.exec(release)?.[0] ?? '0').split('.').map(Number);
