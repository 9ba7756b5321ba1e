import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** The columns that decisions depend on. Their updates, and inserts and deletes of rows, renew the fact version. */
const WATCHED = {
  agents: [
    'agent_id',
    'name',
    'owner_id',
    'agent_type',
    'status',
    'status_since',
    'status_cause',
    'status_detail',
    'created_at',
    'expires_at',
    'public_key_pem',
    'key_fingerprint',
    'parent_id',
    'policy_id',
  ],
  policies: ['name', 'version'],
  platforms: ['version', 'suspended'],
  grants: ['agent_id', 'platform_id', 'connection_id', 'scopes', 'constraints', 'require_approval', 'expires_at'],
  connections: ['platform_id', 'is_default', 'label', 'status', 'credential', 'upstream_scopes'],
};
/** Watched for updates only: an organisation has no facts before it exists. */
const OF_ORGANISATION = ['guardrails_version', 'approval_ttl_ms', 'auto_suspend'];
/** Strikes are not watched: they change while a breaker is closed, and decisions do not depend on them. */
const OF_BREAKER = ['opened_at', 'open_until', 'trial_at'];

const differs = (columns: readonly string[]) =>
  columns.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
const isSet = (row: 'old' | 'new') => OF_BREAKER.map((column) => `${row}.${column} is not null`).join(' or ');

type Watch = { table: string; on: 'insert' | 'update' | 'delete'; when?: string };

const WATCHES: readonly Watch[] = [
  ...Object.entries(WATCHED).flatMap(([table, columns]): Watch[] => [
    { table, on: 'insert' },
    { table, on: 'update', when: differs(columns) },
    { table, on: 'delete' },
  ]),
  { table: 'organisations', on: 'update', when: differs(OF_ORGANISATION) },
  { table: 'breakers', on: 'insert', when: isSet('new') },
  { table: 'breakers', on: 'update', when: differs(OF_BREAKER) },
  { table: 'breakers', on: 'delete', when: isSet('old') },
];

/** A version never repeats, not even in a restored store, or after a failover to a replica that had missed a change. */
const NEW_ON_SQLITE = 'hex(randomblob(16))';

/**
 * A version of everything that decisions about an organisation's agents depend on. The database itself renews it in the transaction of the
 * change, whoever makes it, so that cached facts of the current version are valid.
 */
export async function factVersions(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .createTable('fact_versions')
    .addColumn('organisation_id', 'text', (c) => c.primaryKey())
    .addColumn('version', 'text', (c) => c.notNull())
    .execute();
  const version = sql.raw(dialect === 'sqlite' ? NEW_ON_SQLITE : 'gen_random_uuid()::text');
  await sql`insert into fact_versions (organisation_id, version) select id, ${version} from organisations`.execute(db);
  if (dialect === 'postgres') await watchOnPostgres(db);
  else await watchOnSqlite(db);
}

const idOf = ({ table, on }: Watch) =>
  `${on === 'delete' ? 'old' : 'new'}.${table === 'organisations' ? 'id' : 'organisation_id'}`;

async function watchOnSqlite(db: Kysely<unknown>): Promise<void> {
  for (const watch of WATCHES) {
    const { table, on, when } = watch;
    await sql
      .raw(
        `create trigger fact_version_${table}_${on} after ${on} on ${table} ${when === undefined ? '' : `when ${when}`}
        begin
          insert into fact_versions (organisation_id, version) values (${idOf(watch)}, ${NEW_ON_SQLITE})
            on conflict (organisation_id) do update set version = excluded.version;
        end`,
      )
      .execute(db);
  }
}

/**
 * Each transaction writes the version once, however many rows it changes: the version begins with the transaction's id and time (ids repeat
 * in another cluster into which a dump is restored). The write is deferred to the commit: transactions of an organisation wait there for
 * each other, and by then need no other lock, so that they cannot deadlock.
 */
async function watchOnPostgres(db: Kysely<unknown>): Promise<void> {
  for (const key of ['organisation_id', 'id'] as const)
    await sql
      .raw(
        `create function renew_fact_version_by_${key}() returns trigger language plpgsql as $$
        declare
          organisation text := case when tg_op = 'DELETE' then old.${key} else new.${key} end;
          mine text := concat(pg_current_xact_id(), ' ', extract(epoch from transaction_timestamp()), ' ');
        begin
          insert into fact_versions as v (organisation_id, version) values (organisation, mine || gen_random_uuid())
            on conflict (organisation_id) do update set version = excluded.version where not starts_with(v.version, mine);
          return null;
        end $$`,
      )
      .execute(db);
  for (const { table, on, when } of WATCHES)
    await sql
      .raw(
        `create constraint trigger fact_version_${table}_${on} after ${on} on ${table} deferrable initially deferred
        for each row ${when === undefined ? '' : `when (${when})`}
        execute function renew_fact_version_by_${table === 'organisations' ? 'id' : 'organisation_id'}()`,
      )
      .execute(db);
}
