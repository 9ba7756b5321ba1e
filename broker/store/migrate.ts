import { type Kysely, sql } from 'kysely';
import { type MigrationResultSet, Migrator } from 'kysely/migration';
import { type ColumnTypes, foundation } from './migrations/0001-foundation.ts';
import { approvals } from './migrations/0002-approvals.ts';
import { ownersApprove } from './migrations/0003-owners-approve.ts';
import { registration } from './migrations/0004-registration.ts';
import { children } from './migrations/0005-children.ts';
import { oauth } from './migrations/0006-oauth.ts';
import { mcpTools } from './migrations/0007-tools.ts';
import { mcpClients } from './migrations/0008-mcp-clients.ts';
import { halts } from './migrations/0009-halts.ts';
import { factVersions } from './migrations/0010-fact-versions.ts';
import { rotatingTokens } from './migrations/0013-rotating-tokens.ts';
import { storedResponses } from './migrations/0015-stored-responses.ts';
import { clientSources } from './migrations/0016-client-sources.ts';
import { passkeyChallenges } from './migrations/0017-passkey-challenges.ts';
import { governanceVersions } from './migrations/0018-governance-versions.ts';
import { derivedReceipts } from './migrations/0019-derived-receipts.ts';
import { bulkChanges } from './migrations/0020-bulk-changes.ts';
import { upstreamTokens } from './migrations/0023-upstream-tokens.ts';
import { people } from './migrations/0024-people.ts';
import { personSessions } from './migrations/0025-person-sessions.ts';
import { sentences } from './migrations/0026-sentences.ts';
import { discoverablePasskeys } from './migrations/0027-discoverable-passkeys.ts';
import { connectionTests } from './migrations/0028-connection-tests.ts';
import { heldJoins } from './migrations/0030-held-joins.ts';
import { staticKeys } from './migrations/0032-static-keys.ts';
import { connectionPatience } from './migrations/0033-connection-patience.ts';
import { notices } from './migrations/0034-notices.ts';
import { standingApprovals } from './migrations/0035-standing-approvals.ts';
import { activityCounts } from './migrations/0036-activity-counts.ts';
import { agentsAtAGlance } from './migrations/0037-agents-at-a-glance.ts';
import { agentDeeds } from './migrations/0038-agent-deeds.ts';
import { decideIn } from './migrations/0039-decide-in.ts';
import { webPush } from './migrations/0040-web-push.ts';
import { receiptLog } from './migrations/0041-receipt-log.ts';
import { restoredStores } from './migrations/0042-restored-stores.ts';
import { releases } from './migrations/0043-releases.ts';
import { auditSinks } from './migrations/0045-audit-sinks.ts';
import { rateCounts } from './migrations/0046-rate-counts.ts';
import { retention } from './migrations/0047-retention.ts';
import { auditPartitions, boundAuditRows } from './migrations/0048-audit-partitions.ts';
import { sinksInFiles } from './migrations/0049-sinks-in-files.ts';
import { passkeyDeciders } from './migrations/0050-passkey-deciders.ts';
import { signIns } from './migrations/0051-sign-ins.ts';
import { governanceApplies } from './migrations/0052-governance-applies.ts';
import { agentsOwnersAndLabels } from './migrations/0053-agents-owners-and-labels.ts';
import { logBatches } from './migrations/0054-log-batches.ts';
import { idempotencyInstances } from './migrations/0055-idempotency-instances.ts';
import { platformEntries } from './migrations/0056-platform-entries.ts';
import { restoredCounters } from './migrations/0057-restored-counters.ts';
import { pipelines } from './migrations/0058-pipelines.ts';
import { workloads } from './migrations/0059-workloads.ts';
import { workloadsInFiles } from './migrations/0060-workloads-in-files.ts';
import { rolesByGroups } from './migrations/0061-roles-by-groups.ts';
import { limitCounts } from './migrations/0062-limit-counts.ts';
import { callMarks } from './migrations/0063-call-marks.ts';
import { corrections } from './migrations/0064-corrections.ts';
import { correctionRows } from './migrations/0065-correction-rows.ts';
import { obtainingBrowsers } from './migrations/0066-obtaining-browsers.ts';
import { tokenMakers } from './migrations/0067-token-makers.ts';
import { toldJoins } from './migrations/0068-told-joins.ts';
import { refuseTransactionPooler } from './pooler.ts';
import { compareReleases, findReadableBy, type Step, saying } from './readable-by.ts';
import type { Store } from './store.ts';

/**
 * Numbered, forward only. A published migration is never edited: a later one fixes it. From 0041 on they only add, and say in `readableBy` the
 * oldest release that may run on the store then: the one before the release that brings them.
 */
const migrations = (types: ColumnTypes, dialect: Store['dialect']): Record<string, Step> => ({
  '0001-foundation': { up: (db: Kysely<unknown>) => foundation(db, types) },
  '0002-approvals': { up: (db: Kysely<unknown>) => approvals(db, types) },
  '0003-owners-approve': { up: (db: Kysely<unknown>) => ownersApprove(db, types) },
  '0004-registration': { up: (db: Kysely<unknown>) => registration(db, types) },
  '0005-children': { up: (db: Kysely<unknown>) => children(db) },
  '0006-oauth': { up: (db: Kysely<unknown>) => oauth(db, types) },
  '0007-tools': { up: mcpTools },
  '0008-mcp-clients': { up: (db: Kysely<unknown>) => mcpClients(db) },
  '0009-halts': { up: (db: Kysely<unknown>) => halts(db, types) },
  '0010-fact-versions': { up: (db: Kysely<unknown>) => factVersions(db, dialect) },
  '0013-rotating-tokens': { up: rotatingTokens },
  '0015-stored-responses': { up: storedResponses },
  '0016-client-sources': { up: clientSources },
  '0017-passkey-challenges': { up: passkeyChallenges },
  '0018-governance-versions': { up: (db: Kysely<unknown>) => governanceVersions(db, dialect) },
  '0019-derived-receipts': { up: derivedReceipts },
  '0020-bulk-changes': { up: (db: Kysely<unknown>) => bulkChanges(db, dialect) },
  '0023-upstream-tokens': { up: (db: Kysely<unknown>) => upstreamTokens(db, types) },
  '0024-people': { up: (db: Kysely<unknown>) => people(db, types) },
  '0025-person-sessions': { up: personSessions },
  '0026-sentences': { up: (db: Kysely<unknown>) => sentences(db, types) },
  '0027-discoverable-passkeys': { up: discoverablePasskeys },
  '0028-connection-tests': { up: connectionTests },
  '0030-held-joins': { up: heldJoins },
  '0032-static-keys': { up: staticKeys },
  '0033-connection-patience': { up: (db: Kysely<unknown>) => connectionPatience(db, dialect) },
  '0034-notices': { up: (db: Kysely<unknown>) => notices(db, types, dialect) },
  '0035-standing-approvals': { up: (db: Kysely<unknown>) => standingApprovals(db, types, dialect) },
  '0036-activity-counts': { up: activityCounts },
  '0037-agents-at-a-glance': { up: (db: Kysely<unknown>) => agentsAtAGlance(db, dialect) },
  '0038-agent-deeds': { up: agentDeeds },
  '0039-decide-in': { up: decideIn },
  '0040-web-push': { up: (db: Kysely<unknown>) => webPush(db, types) },
  '0041-receipt-log': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => receiptLog(db, types, dialect) },
  '0042-restored-stores': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => restoredStores(db, dialect) },
  '0043-releases': { readableBy: '0.1.0', up: releases },
  '0045-audit-sinks': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => auditSinks(db, types) },
  '0046-rate-counts': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => rateCounts(db, dialect) },
  '0047-retention': { readableBy: '0.1.0', up: retention },
  '0048-audit-partitions': {
    readableBy: '0.1.0',
    prepare: boundAuditRows,
    up: (db: Kysely<unknown>) => auditPartitions(db, dialect),
  },
  '0049-sinks-in-files': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => sinksInFiles(db, dialect) },
  '0050-passkey-deciders': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => passkeyDeciders(db, dialect) },
  '0051-sign-ins': { readableBy: '0.1.0', up: signIns },
  '0052-governance-applies': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => governanceApplies(db, types) },
  '0053-agents-owners-and-labels': {
    readableBy: '0.1.0',
    up: (db: Kysely<unknown>) => agentsOwnersAndLabels(db, dialect),
  },
  '0054-log-batches': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => logBatches(db, dialect) },
  '0055-idempotency-instances': { readableBy: '0.1.0', up: idempotencyInstances },
  '0056-platform-entries': { readableBy: '0.1.0', up: platformEntries },
  '0057-restored-counters': { readableBy: '0.1.0', up: restoredCounters },
  '0058-pipelines': { readableBy: '0.1.0', up: pipelines },
  '0059-workloads': { readableBy: '0.1.0', up: workloads },
  '0060-workloads-in-files': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => workloadsInFiles(db, dialect) },
  '0061-roles-by-groups': { readableBy: '0.1.0', up: rolesByGroups },
  '0062-limit-counts': { readableBy: '0.1.0', up: limitCounts },
  '0063-call-marks': { readableBy: '0.1.0', up: callMarks },
  '0064-corrections': { readableBy: '0.1.0', up: (db: Kysely<unknown>) => corrections(db, types) },
  '0065-correction-rows': { readableBy: '0.1.0', up: correctionRows },
  '0066-obtaining-browsers': { readableBy: '0.1.0', up: obtainingBrowsers },
  '0067-token-makers': { readableBy: '0.1.0', up: tokenMakers },
  '0068-told-joins': { readableBy: '0.1.0', up: toldJoins },
});

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
 * newer than what this release may run on, or when it is behind a pooler of transactions: every start comes by here.
 */
export async function migrate(store: Store, release?: string): Promise<string[]> {
  const newer = await findNewerMigrations(store);
  await refuseUnreadable(store, release, newer);
  await refuseTransactionPooler(store);
  const applied = new Set(await findApplied(store));
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
