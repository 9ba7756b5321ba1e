import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** Of organisations, all that decisions look at (0037), now with the new column. */
const WATCHED = ['guardrails_version', 'approval_ttl_ms', 'auto_suspend', 'agents_stopped', 'restored'];

/** That the store was restored, and no admin of the organisation has reviewed it yet: no call is made meanwhile. */
export async function restoredStores(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  // JSON: when, from which backup, what was ended; null: it is not waiting for a review.
  await db.schema.alterTable('organisations').addColumn('restored', 'text').execute();
  const when = WATCHED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
  const statements =
    dialect === 'sqlite'
      ? [
          'drop trigger fact_version_organisations_update',
          `create trigger fact_version_organisations_update after update on organisations when ${when}
           begin
             insert into fact_versions (organisation_id, version) values (new.id, hex(randomblob(16)))
               on conflict (organisation_id) do update set version = excluded.version;
           end`,
        ]
      : [
          'drop trigger fact_version_organisations_update on organisations',
          `create constraint trigger fact_version_organisations_update after update on organisations
           deferrable initially deferred for each row when (${when})
           execute function renew_fact_version_by_id()`,
        ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
