import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';
import { watchOrganisations } from './watch-organisations.ts';

/** The columns of organisations that decisions depend on (0010), including the new one. */
const WATCHED = ['guardrails_version', 'approval_ttl_ms', 'auto_suspend', 'agents_stopped'];

/**
 * An index for finding and counting the calls of one agent without reading other agents' rows, or the rows themselves; and whether all agents
 * of an organisation are stopped, which decisions depend on.
 */
export async function agentsAtAGlance(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await sql`create index audit_rows_of_agent on audit_rows (organisation_id, agent_id, id, kind, result)
    where agent_id is not null`.execute(db);
  // JSON: since when, by whom, with which message; null: not stopped.
  await db.schema.alterTable('organisations').addColumn('agents_stopped', 'text').execute();
  await watchOrganisations(db, dialect, WATCHED);
}
