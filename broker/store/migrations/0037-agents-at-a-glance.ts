import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

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
