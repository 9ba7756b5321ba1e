import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** The columns that a governance file covers. Their updates, and inserts and deletes of rows, renew the governance version. */
const WATCHED = {
  agents: [
    'name',
    'owner_id',
    'agent_type',
    'status',
    'status_detail',
    'policy_id',
    'origin',
    'public_key_pem',
    'key_fingerprint',
  ],
  owners: ['email', 'role', 'origin'],
  policies: ['name', 'version'],
  platforms: ['version', 'suspended'],
  platform_secrets: ['name', 'value'],
  connections: ['platform_id', 'is_default', 'label', 'credential', 'secret_reference', 'oauth'],
  grants: [
    'agent_id',
    'platform_id',
    'connection_id',
    'scopes',
    'constraints',
    'require_approval',
    'expires_at',
    'expires_text',
  ],
};
/** Watched for updates only: an organisation has no governed rows before it exists. */
const OF_ORGANISATION = ['name', 'publish_identity_documents', 'guardrails_version', 'auto_suspend'];

const OPERATIONS = ['insert', 'update', 'delete'] as const;
type Watch = { table: string; on: (typeof OPERATIONS)[number]; columns: readonly string[] };

const WATCHES: readonly Watch[] = [
  ...Object.entries(WATCHED).flatMap(([table, columns]) => OPERATIONS.map((on): Watch => ({ table, on, columns }))),
  { table: 'organisations', on: 'update', columns: OF_ORGANISATION },
];

/** The row to test: the new one, or the old one of a delete. */
const rowOf = ({ on }: Watch): 'old' | 'new' => (on === 'delete' ? 'old' : 'new');

/** Children are excluded: they are not in governance files, and their parents create and end them all the time. */
function conditionOf(watch: Watch): string[] {
  const differs = watch.columns.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
  return [
    ...(watch.on === 'update' ? [`(${differs})`] : []),
    ...(watch.table === 'agents' ? [`${rowOf(watch)}.parent_id is null`] : []),
  ];
}

/**
 * A version of everything that a governance file covers, so that an apply can plan before its transaction and then check that the plan is
 * still valid. The database itself renews it in the transaction of the change, whoever makes it. An organisation has a row from its first
 * change on.
 */
export async function governanceVersions(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .createTable('governance_versions')
    .addColumn('organisation_id', 'text', (c) => c.primaryKey())
    .addColumn('version', 'text', (c) => c.notNull())
    .execute();
  await sql`create index agents_children_by_id on agents (id) where parent_id is not null`.execute(db);
  if (dialect === 'postgres') await watchOnPostgres(db);
  else await watchOnSqlite(db);
}

const whenOf = (conditions: readonly string[]) => (conditions.length === 0 ? '' : `when (${conditions.join(' and ')})`);

async function watchOnSqlite(db: Kysely<unknown>): Promise<void> {
  for (const watch of WATCHES) {
    const { table, on } = watch;
    const row = rowOf(watch);
    // The `+` makes SQLite use the index of children, which are few, instead of the primary key, which has every agent.
    const child = `select 1 from agents where id = ${row}.agent_id and parent_id is not null and +organisation_id = ${row}.organisation_id`;
    const conditions = [...conditionOf(watch), ...(table === 'grants' ? [`not exists (${child})`] : [])];
    const organisation = `${row}.${table === 'organisations' ? 'id' : 'organisation_id'}`;
    await sql
      .raw(
        `create trigger governance_version_${table}_${on} after ${on} on ${table} ${whenOf(conditions)}
        begin
          insert into governance_versions (organisation_id, version) values (${organisation}, hex(randomblob(16)))
            on conflict (organisation_id) do update set version = excluded.version;
        end`,
      )
      .execute(db);
  }
}

/** As for fact versions: written once per transaction, deferred to the commit. */
async function watchOnPostgres(db: Kysely<unknown>): Promise<void> {
  await sql
    .raw(
      `create function renew_governance_version() returns trigger language plpgsql as $$
      declare
        organisation text;
        agent text;
        mine text := concat(pg_current_xact_id(), ' ', extract(epoch from transaction_timestamp()), ' ');
      begin
        if tg_table_name = 'organisations' then organisation := new.id;
        elsif tg_op = 'DELETE' then organisation := old.organisation_id;
        else organisation := new.organisation_id;
        end if;
        if tg_table_name = 'grants' then
          if tg_op = 'DELETE' then agent := old.agent_id; else agent := new.agent_id; end if;
          if exists (select from agents a where a.organisation_id = organisation and a.id = agent and a.parent_id is not null)
            then return null;
          end if;
        end if;
        insert into governance_versions as v (organisation_id, version) values (organisation, mine || gen_random_uuid())
          on conflict (organisation_id) do update set version = excluded.version where not starts_with(v.version, mine);
        return null;
      end $$`,
    )
    .execute(db);
  for (const watch of WATCHES) {
    const { table, on } = watch;
    await sql
      .raw(
        `create constraint trigger governance_version_${table}_${on} after ${on} on ${table} deferrable initially deferred
        for each row ${whenOf(conditionOf(watch))} execute function renew_governance_version()`,
      )
      .execute(db);
  }
}
