import type { Kysely } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
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
import type { Store } from './store.ts';

/** Numbered, forward only. A published migration is never edited: a later one fixes it. */
const migrations = (types: ColumnTypes, dialect: Store['dialect']): Record<string, Migration> => ({
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
});

const migratorOf = (store: Store): Migrator =>
  new Migrator({
    db: store.db,
    provider: { getMigrations: async () => migrations({ bytes: store.bytes }, store.dialect) },
  });

/** Whether the store has tables at all. Changes nothing. */
export async function isMigrated(store: Store): Promise<boolean> {
  const known = await migratorOf(store).getMigrations();
  return known.some((migration) => migration.executedAt !== undefined);
}

/**
 * Applies pending migrations, each in a transaction, under a lock, so that processes may start concurrently. Returns the names
 * of those that were applied now. Throws when one fails, or when the store is newer than this code.
 */
export async function migrate(store: Store): Promise<string[]> {
  const { error, results } = await migratorOf(store).migrateToLatest();
  const newer = error instanceof Error ? /previously executed migration (\S+) is missing/.exec(error.message) : null;
  if (newer)
    throw new Error(
      `This store was written by a newer version of agent-broker (it has the migration ${newer[1]}, which this version ` +
        'does not know). Nothing was changed. Run that version or a later one, or restore a backup from before it.',
      { cause: error },
    );
  if (error)
    throw new Error(
      `A migration of the store failed: ${error instanceof Error ? error.message : String(error)}. ` +
        `The failed migration was rolled back.`,
      { cause: error },
    );
  return (results ?? []).map((result) => result.migrationName);
}
