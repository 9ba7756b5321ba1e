import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** The columns of a sink that a governance file covers; its progress is not among them, since it changes all the time. */
const GOVERNED = ['name', 'kind', 'format', 'settings', 'secret', 'secret_reference'];

/** Audit sinks in governance files: the reference of a sink's secret, and a new governance version on each change. */
export async function sinksInFiles(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema.alterTable('audit_sinks').addColumn('secret_reference', 'text').execute();
  for (const on of ['insert', 'update', 'delete'] as const) {
    const row = on === 'delete' ? 'old' : 'new';
    const differs = GOVERNED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
    const when = on === 'update' ? `when (${differs})` : '';
    await sql
      .raw(
        dialect === 'sqlite'
          ? `create trigger governance_version_audit_sinks_${on} after ${on} on audit_sinks ${when}
             begin
               insert into governance_versions (organisation_id, version) values (${row}.organisation_id, hex(randomblob(16)))
                 on conflict (organisation_id) do update set version = excluded.version;
             end`
          : `create constraint trigger governance_version_audit_sinks_${on} after ${on} on audit_sinks
             deferrable initially deferred for each row ${when} execute function renew_governance_version()`,
      )
      .execute(db);
  }
}
