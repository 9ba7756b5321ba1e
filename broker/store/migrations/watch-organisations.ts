import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** Replaces the trigger of organisations, so that their fact version (0010) is renewed when one of these columns changes, and only then. */
export async function watchOrganisations(
  db: Kysely<unknown>,
  dialect: Store['dialect'],
  columns: readonly string[],
): Promise<void> {
  const when = columns.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
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
