import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';
import { watchOrganisations } from './watch-organisations.ts';

/** Of organisations, all that decisions look at (0010), now with the new column. */
const WATCHED = ['guardrails_version', 'approval_ttl_ms', 'auto_suspend', 'agents_stopped'];

/**
 * An index by which the calls of one agent are found and counted without reading the rows of others, nor the rows themselves; and
 * whether all agents of an organisation are stopped, at which decisions look.
 */
export async function agentsAtAGlance(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await sql`create index audit_rows_of_agent on audit_rows (organisation_id, agent_id, id, kind, result)
    where agent_id is not null`.execute(db);
  // JSON: since when, by whom, in which words; null: they are not stopped.
  await db.schema.alterTable('organisations').addColumn('agents_stopped', 'text').execute();
  await watchOrganisations(db, dialect, WATCHED);
}
