import type { Kysely } from 'kysely';
import type { Store } from '../store.ts';
import { watchOrganisations } from './watch-organisations.ts';

/** The columns of organisations that decisions depend on (0037), including the new one. */
const WATCHED = ['guardrails_version', 'approval_ttl_ms', 'auto_suspend', 'agents_stopped', 'restored'];

/** Marks a restored store until an admin of the organisation has reviewed it: no call is made meanwhile. */
export async function restoredStores(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  // JSON: when, from which backup, what was ended; null: no review is pending.
  await db.schema.alterTable('organisations').addColumn('restored', 'text').execute();
  await watchOrganisations(db, dialect, WATCHED);
}
