import { sql } from 'kysely';
import { type MigrationResultSet, Migrator } from 'kysely/migration';
import { migrations } from './migrations/all.ts';
import { refuseOtherEncoding } from './postgres/encoding.ts';
import { refuseTransactionPooler } from './postgres/pooler.ts';
import { compareReleases, findReadableBy, type Step, saying } from './readable-by.ts';
import type { Store } from './store.ts';

const stepsOf = (store: Store) => migrations({ bytes: store.bytes }, store.dialect);

/** Builds the migrator. `newer`: migrations that a newer release applied, which this release does not have. */
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
 * Returns the names of the applied migrations in order; empty for a store without tables. Read-only. Each start needs this several times,
 * and Kysely's own check reads every column of every table first.
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

/** Whether any migration was applied, that is, whether the store has tables. Read-only. */
export const isMigrated = async (store: Store): Promise<boolean> => (await findApplied(store)).length > 0;

/** Returns the applied migrations that this release does not have, in order. */
export async function findNewerMigrations(store: Store): Promise<string[]> {
  const steps = stepsOf(store);
  return (await findApplied(store)).filter((name) => steps[name] === undefined);
}

/** Throws a readable error when this release cannot run on the store. */
async function refuseUnreadable(store: Store, release: string | undefined, newer: readonly string[]): Promise<void> {
  if (!(await isMigrated(store))) return;
  const readableBy = await findReadableBy(store.db);
  if (newer.length === 0 && (readableBy === undefined || release === undefined)) return;
  if (readableBy !== undefined && release !== undefined && compareReleases(release, readableBy) >= 0) return;
  const why =
    newer.length > 0
      ? `it has the migration ${newer[0]}, which this version does not know`
      : 'what this version needs was removed from it';
  throw new Error(
    `This store was written by a newer version of agent-broker (${why}). ` +
      `${readableBy === undefined || release === undefined ? '' : `It can be used by ${readableBy} and later, and this is ${release}. `}` +
      'Nothing was changed. Run that version or a later one, or restore a backup from before it.',
  );
}

/**
 * Applies pending migrations, each in a transaction, under a lock, so that processes may start concurrently. Returns the names of those
 * applied now. `release`: this release; without it a store of a newer release is rejected. Throws when a migration fails, when the store
 * is too new for this release, when it is behind a transaction pooler, or when a new store would not use UTF-8. Every start calls this.
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
    // A newer release has migrated the store concurrently.
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

/** Runs without statement timeout: a migration of a large store takes minutes, and a concurrent start waits for it. */
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

/** Runs the `prepare` steps of pending migrations. Returns a function that undoes them. */
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

/** Returns for each migration the oldest release that can run on the store after it, where the migration defines one. */
export const readableByMigration = (store: Store): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(stepsOf(store)).map(([name, { readableBy }]) => [name, readableBy]));
