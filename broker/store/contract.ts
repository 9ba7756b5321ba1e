/** The contract step of a migration, run once no process of the previous release is running. */
import { Migrator } from 'kysely/migration';
import { LIVE_MS } from './instances.ts';
import { compareReleases, type Step, saying } from './readable-by.ts';
import type { Store } from './store.ts';

/**
 * Steps that drop columns and tables which only the previous release read. They have their own numbering; `readableBy` is the first release
 * that works without them. None yet.
 */
const contractions: Readonly<Record<string, Required<Pick<Step, 'up' | 'readableBy'>>>> = {};

/**
 * Removes what only earlier releases needed. `now`: by the store's clock, in milliseconds. Returns the names of the steps done now. Throws
 * a readable error while a process of an earlier release runs, or when a step fails; then the step has no effect.
 */
export async function contract(store: Store, now: number): Promise<string[]> {
  const migrator = new Migrator({
    db: store.db,
    provider: { getMigrations: async () => saying(contractions) },
    migrationTableName: 'kysely_contraction',
    migrationLockTableName: 'kysely_contraction_lock',
  });
  const pending = (await migrator.getMigrations()).filter(({ executedAt }) => executedAt === undefined);
  const needed = pending
    .map(({ name }) => contractions[name]?.readableBy ?? '0')
    .toSorted(compareReleases)
    .at(-1);
  if (needed === undefined) return [];
  const older = (await store.db.selectFrom('instances').select(['id', 'seen_at', 'release']).execute()).filter(
    ({ seen_at, release }) => seen_at > now - LIVE_MS && compareReleases(release ?? '0', needed) < 0,
  );
  if (older.length > 0)
    throw new Error(
      `${older.length === 1 ? 'A broker' : `${older.length} brokers`} of an earlier release than ${needed} still ${older.length === 1 ? 'runs' : 'run'} on this store ` +
        `(${older.map(({ id, release }) => `${id}: ${release ?? 'unknown'}`).join(', ')}), and would fail. Nothing was changed. Replace or stop them; after one was killed, wait ${LIVE_MS / 1000} s.`,
    );
  const { error, results } = await migrator.migrateToLatest();
  if (error)
    throw new Error(
      `A contraction of the store failed: ${error instanceof Error ? error.message : String(error)}. It was rolled back.`,
      { cause: error },
    );
  return (results ?? []).map(({ migrationName }) => migrationName);
}
