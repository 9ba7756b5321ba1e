import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

const LABELS = 'old.labels is distinct from new.labels';
const OWNERS = 'old.former_owners is distinct from new.former_owners';
/** Children are in no governance file. */
const IN_FILES = 'new.parent_id is null';

/**
 * Former owners of an agent, whom its tokens may still name; and its labels. Conditions and governance files refer to labels, so a change of
 * them renews both versions (0010, 0018).
 */
export async function agentsOwnersAndLabels(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  // Uuids, separated by spaces.
  await db.schema.alterTable('agents').addColumn('former_owners', 'text').execute();
  // A JSON list in alphabetical order; null: none.
  await db.schema.alterTable('agents').addColumn('labels', 'text').execute();
  const watches = [
    { name: 'fact_version_agents_labels_and_owners', table: 'fact_versions', when: `${LABELS} or ${OWNERS}` },
    { name: 'governance_version_agents_labels', table: 'governance_versions', when: `${LABELS} and ${IN_FILES}` },
  ] as const;
  const renew = {
    fact_versions: 'renew_fact_version_by_organisation_id',
    governance_versions: 'renew_governance_version',
  };
  for (const { name, table, when } of watches)
    await sql
      .raw(
        dialect === 'sqlite'
          ? // As the other triggers of agents (0020): a bulk change renews both versions once.
            `create trigger ${name} after update on agents
             when not exists (select 1 from bulk_changes where organisation_id = new.organisation_id) and (${when})
             begin
               insert into ${table} (organisation_id, version) values (new.organisation_id, hex(randomblob(16)))
                 on conflict (organisation_id) do update set version = excluded.version;
             end`
          : `create constraint trigger ${name} after update on agents
             deferrable initially deferred for each row when (${when}) execute function ${renew[table]}()`,
      )
      .execute(db);
}
