import type { Kysely } from 'kysely';
import type { Store } from '../store.ts';
import { watchOrganisations } from './watch-organisations.ts';

/** Of organisations, all that decisions look at (0037), now with the new column. */
const WATCHED = ['guardrails_version', 'approval_ttl_ms', 'auto_suspend', 'agents_stopped', 'restored'];

/** That the store was restored, and no admin of the organisation has reviewed it yet: no call is made meanwhile. */
export async function restoredStores(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  // JSON: when, from which backup, what was ended; null: it is not waiting for a review.
  await db.schema.alterTable('organisations').addColumn('restored', 'text').execute();
  await watchOrganisations(db, dialect, WATCHED);
}
