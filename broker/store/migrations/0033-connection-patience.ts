import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

const NEW_COLUMNS = ['idle_ms', 'wait_ms'];
/** The columns of connections that decisions and calls depend on (0010), including the new ones. */
const WATCHED = ['platform_id', 'is_default', 'label', 'status', 'credential', 'upstream_scopes', ...NEW_COLUMNS];

/**
 * Idle timeout of a connection's streamed answers, and how long a request of an unmodified client waits for a person. Calls take both from
 * the facts, so a change renews the fact version.
 */
export async function connectionPatience(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  for (const column of NEW_COLUMNS) await db.schema.alterTable('connections').addColumn(column, 'integer').execute();
  const when = WATCHED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
  const statements =
    dialect === 'sqlite'
      ? [
          'drop trigger fact_version_connections_update',
          `create trigger fact_version_connections_update after update on connections when ${when}
           begin
             insert into fact_versions (organisation_id, version) values (new.organisation_id, hex(randomblob(16)))
               on conflict (organisation_id) do update set version = excluded.version;
           end`,
        ]
      : [
          'drop trigger fact_version_connections_update on connections',
          `create constraint trigger fact_version_connections_update after update on connections
           deferrable initially deferred for each row when (${when})
           execute function renew_fact_version_by_organisation_id()`,
        ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
