import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** The columns of a connection that a governance file covers (0018), except for its secret. The last two came later (0033). */
const GOVERNED = ['platform_id', 'is_default', 'label', 'secret_reference', 'idle_ms', 'wait_ms'];
const SECRET = ['credential', 'oauth'];
/** False for the broker's own token refresh: tokens exist before and after, and `revision` is unchanged, which every owner, callback or file increments. */
const BY_SOMEBODY = 'old.oauth is null or new.oauth is null or old.revision is distinct from new.revision';

const differs = (columns: readonly string[]) =>
  columns.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');

/**
 * A token refresh of an OAuth connection no longer renews the governance version: a plan depends only on whether there are tokens, and with
 * many connections some are refreshed every few seconds. Whoever ends tokens reads the row in the same transaction.
 */
export async function refreshedTokens(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  const when = `${differs(GOVERNED)} or ((${differs(SECRET)}) and (${BY_SOMEBODY}))`;
  const statements =
    dialect === 'sqlite'
      ? [
          'drop trigger governance_version_connections_update',
          `create trigger governance_version_connections_update after update on connections when ${when}
           begin
             insert into governance_versions (organisation_id, version) values (new.organisation_id, hex(randomblob(16)))
               on conflict (organisation_id) do update set version = excluded.version;
           end`,
        ]
      : [
          'drop trigger governance_version_connections_update on connections',
          `create constraint trigger governance_version_connections_update after update on connections
           deferrable initially deferred for each row when (${when}) execute function renew_governance_version()`,
        ];
  for (const statement of statements) await sql.raw(statement).execute(db);
}
