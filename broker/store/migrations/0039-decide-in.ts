import type { Kysely } from 'kysely';

/**
 * Decisions in a chat. `decide_in`: names of the channels in which a held call may be decided by a button, from the rules that held it.
 * `decided_on`: the channel of the decision, and the person's identity there. `decided_how` is `api` then: SQLite cannot widen its check, and
 * earlier versions read it.
 */
export async function decideIn(db: Kysely<unknown>): Promise<void> {
  await db.schema.alterTable('approvals').addColumn('decide_in', 'text').execute();
  await db.schema.alterTable('approvals').addColumn('decided_on', 'text').execute();
}
