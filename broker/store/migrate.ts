import { sql } from 'kysely';
import { type MigrationResultSet, Migrator } from 'kysely/migration';
import { migrations } from './migrations/all.ts';
import { refuseTransactionPooler } from './pooler.ts';
import { refuseOtherEncoding } from './postgres-encoding.ts';
import { compareReleases, findReadableBy, type Step, saying } from './readable-by.ts';
import type { Store } from './store.ts';

const stepsOf = (store: Store) => migrations({ bytes: store.bytes }, store.dialect);

/** `newer`: applied by a newer release, and not known here. */
export const migratorOf = (store: Store, newer: readonly string[] = []): Migrator => {
  const unknown = newer.map((name): [string, Step] => [
    name,
    { up: () => Promise.reject(new Error(`${name} is not known here`)) },
  ]);
  return new Migrator({
    db: store.db,
    provider: { getMigrations: async () => ({ ...saying(stepsOf(store)), ...Object.fromEntries(unknown) }) },
  });
};

/**
 * The names of the migrations that a store has, in their order; none of a store without tables. Changes nothing. A start asks several times, and Kysely's
 * own answer reads every column of every table first.
 */
async function findApplied({ db, dialect }: Store): Promise<string[]> {
  const tables =
    dialect === 'sqlite'
      ? sql<{ found: number }>`select 1 as found from sqlite_master where name = 'kysely_migration'`
      : sql<{ found: number }>`select 1 as found where to_regclass('kysely_migration') is not null`;
  if ((await tables.execute(db)).rows.length === 0) return [];
  const applied = sql<{ name: string }>`select name from kysely_migration order by name`;
  return (await applied.execute(db)).rows.map(({ name }) => name);
}

/** Whether any migration was applied to the store: whether it has tables at all. Changes nothing. */
export const isMigrated = async (store: Store): Promise<boolean> => (await findApplied(store)).length > 0;

/** The migrations of a store that this release does not know, in their order. */
export async function findNewerMigrations(store: Store): Promise<string[]> {
  const steps = stepsOf(store);
  return (await findApplied(store)).filter((name) => steps[name] === undefined);
}

/** Throws, in words, when this release may not run on the store. */
async function refuseUnreadable(store: Store, release: string | undefined, newer: readonly string[]): Promise<void> {
  if (!(await isMigrated(store))) return;
  const readableBy = await findReadableBy(store.db);
  if (newer.length === 0 && (readableBy === undefined || release === undefined)) return;
  if (readableBy !== undefined && release !== undefined && compareReleases(release, readableBy) >= 0) return;
  const why =
    newer.length > 0
      ? `it has the migration ${newer[0]}, which this version does not know`
      : 'what this version needs was taken away from it';
  throw new Error(
    `This store was written by a newer version of agent-broker (${why}). ` +
      `${readableBy === undefined || release === undefined ? '' : `It can be used by ${readableBy} and later, and this is ${release}. `}` +
      'Nothing was changed. Run that version or a later one, or restore a backup from before it.',
  );
}

/**
 * Applies pending migrations, each in a transaction, under a lock, so that processes may start concurrently. Returns the names
 * of those that were applied now. `release`: this one; without it no store that is newer is taken. Throws when one fails, when the store is
 * newer than what this release may run on, when it is behind a pooler of transactions, or when a new one would not store UTF-8: every start comes by here.
 */
export async function migrate(store: Store, release?: string): Promise<string[]> {
  const newer = await findNewerMigrations(store);
  await refuseUnreadable(store, release, newer);
  await refuseTransactionPooler(store);
  const applied = new Set(await findApplied(store));
  if (applied.size === 0) await refuseOtherEncoding(store);
  if (Object.keys(stepsOf(store)).every((name) => applied.has(name))) return [];
  const { error, results } = await applyPending(store, newer);
  if (error && (await findNewerMigrations(store)).length > newer.length) {
    // A newer release migrated it at this moment.
    return await migrate(store, release);
  }
  if (error)
    throw new Error(
      `A migration of the store failed: ${error instanceof Error ? error.message : String(error)}. ` +
        `The failed migration was rolled back.`,
      { cause: error },
    );
  return (results ?? []).map((result) => result.migrationName);
}

/** A migration of a large store takes minutes, and whoever comes second waits for it. */
async function applyPending(store: Store, newer: readonly string[]): Promise<MigrationResultSet> {
  const untimed = store.untimed?.();
  const patient = untimed ? { ...store, db: untimed.db } : store;
  try {
    const undo = await prepare(patient);
    const applied = await migratorOf(patient, newer).migrateToLatest();
    if (applied.error) await undo();
    return applied;
  } finally {
    await untimed?.close();
  }
}

/** Prepares what is pending. Answers how to undo it. */
async function prepare(store: Store): Promise<() => Promise<void>> {
  const steps = stepsOf(store);
  const undone: (() => Promise<void>)[] = [];
  for (const { name, executedAt } of await migratorOf(store).getMigrations()) {
    const step = executedAt === undefined ? steps[name]?.prepare : undefined;
    if (step) undone.push(await step(store));
  }
  return async () => {
    for (const undo of undone) await undo();
  };
}

/** Which release may run on a store after each migration, as far as they say so. */
export const readableByMigration = (store: Store): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(stepsOf(store)).map(([name, { readableBy }]) => [name, readableBy]));
