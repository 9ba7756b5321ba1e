import type { Kysely } from 'kysely';

/**
 * Deciding in a chat. `decide_in`: the channels, by name, in which a held call may be decided by a button, as the rules said that held it.
 * `decided_on`: the channel in which somebody did, and as whom it knows them. `decided_how` is then `api`: its check cannot be widened in
 * SQLite, and earlier versions read it.
 */
export async function decideIn(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('decide_in', 'text').execute();
  await db.schema.alterTable('approvals').addColumn('decided_on', 'text').execute();
}
