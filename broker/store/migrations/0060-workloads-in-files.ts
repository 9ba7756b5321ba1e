import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** The columns of a workload that a governance file covers; the time of last use is not among them, since it changes all the time. */
const GOVERNED = ['issuer', 'subject', 'jwks_uri', 'origin'];

/** Workloads in governance files: who set one, and a new governance version on each change. */
export async function workloadsInFiles(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  // `governance` or `owner`: a file removes only workloads that a file added.
  await db.schema
    .alterTable('workloads')
    .addColumn('origin', 'text', (c) => c.notNull().defaultTo('owner'))
    .execute();
  for (const on of ['insert', 'update', 'delete'] as const) {
    const row = on === 'delete' ? 'old' : 'new';
    const differs = on === 'update' ? GOVERNED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ') : '';
    await sql
      .raw(
        dialect === 'sqlite'
          ? // As the triggers of agents (0020): a bulk change renews the version once.
            `create trigger governance_version_workloads_${on} after ${on} on workloads
             when not exists (select 1 from bulk_changes where organisation_id = ${row}.organisation_id)
               ${differs && `and (${differs})`}
             begin
               insert into governance_versions (organisation_id, version) values (${row}.organisation_id, hex(randomblob(16)))
                 on conflict (organisation_id) do update set version = excluded.version;
             end`
          : `create constraint trigger governance_version_workloads_${on} after ${on} on workloads
             deferrable initially deferred for each row ${differs && `when (${differs})`}
             execute function renew_governance_version()`,
      )
      .execute(db);
  }
}
