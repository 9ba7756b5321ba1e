/** What `npm run bench -- scale` measures on: agents and audit rows in numbers, made by PostgreSQL itself from one agent and one row of a broker. */
import pg from 'pg';
import { present } from '../broker/runtime/present.ts';
import { makeAuditPartitions } from '../broker/store/audit-partitions.ts';
import { openPostgres } from '../broker/store/postgres.ts';

export const MONTHS = 24;
const MONTH_MS = 30 * 24 * 3600 * 1000;
export const SPAN_MS = MONTHS * MONTH_MS;
/** Beside the one that is looked at, which has half of the agents and half of the rows. */
const OTHER_ORGANISATIONS = 99;
const ROWS_AT_ONCE = 250_000;
/** Sessions at once; the machine is shared. */
const WRITERS = 2;

export type Database = {
  url: string;
  ask(statement: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  end(): Promise<void>;
};

/** A session that makes rows: without the triggers that the broker's own rows go through, and without waiting for the disk. */
export async function connect(url: string): Promise<Database> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('set session_replication_role = replica; set synchronous_commit = off');
  const ask: Database['ask'] = async (statement, values = []) => (await client.query(statement, [...values])).rows;
  return { url, ask, end: () => client.end() };
}

/** Partitions for the months before now: a broker that ran all the time would have them. */
export async function makePastMonths({ url, ask }: Database, now: number): Promise<void> {
  await ask('drop table audit_rows_before');
  const store = openPostgres(url, { connections: 4, onError: () => {} });
  for (let at = now - SPAN_MS; at <= now; at += MONTH_MS) await makeAuditPartitions(store, at);
  await makeAuditPartitions(store, now);
  await store.close();
}

/** Copies of the first agent and its grant: half in its organisation, the rest in others. */
export async function makeAgents({ ask }: Database, count: number): Promise<void> {
  await ask(`create table scale_organisations as
    select 0 as number, id from organisations
    union all select n, md5('organisation' || n)::uuid::text from generate_series(1, ${OTHER_ORGANISATIONS}) n`);
  const other = `from scale_organisations s where s.number > 0`;
  await ask(`insert into organisations (id, name, publish_identity_documents, guardrails_version, approval_ttl_ms, created_at)
    select s.id, 'scale-' || s.number, 0, 0, 86400000, 0 ${other}`);
  await ask(`insert into owners (organisation_id, id, email, role, origin, created_at)
    select s.id, md5('owner' || s.number)::uuid::text, 'owner@scale.example', 'admin', 'added', 0 ${other}`);
  await ask(`insert into policies (organisation_id, id, name, version, created_at)
    select s.id, md5('policy' || s.number)::uuid::text, 'scale', 1, 0 ${other}`);
  await ask(`insert into policy_versions (organisation_id, policy_id, version, rules, created_at)
    select s.id, md5('policy' || s.number)::uuid::text, 1, v.rules, 0
    from scale_organisations s, (select rules from policy_versions limit 1) v where s.number > 0`);
  await ask(`create table scale_agents as
    select n as number, s.id as organisation_id, md5('agent' || n)::uuid::text as id,
      'agt_' || substr(md5('agent id' || n), 1, 20) as agent_id, s.number as of
    from generate_series(1, ${count}) n
    join scale_organisations s on s.number = case when n % 2 = 0 then 0 else 1 + (n / 2) % ${OTHER_ORGANISATIONS} end`);
  await copyRows(ask, 'agents', 'scale_agents s', {
    organisation_id: 's.organisation_id',
    id: 's.id',
    agent_id: 's.agent_id',
    name: `'agent ' || s.number`,
    owner_id: `case when s.of = 0 then t.owner_id else md5('owner' || s.of)::uuid::text end`,
    policy_id: `case when s.of = 0 then t.policy_id else md5('policy' || s.of)::uuid::text end`,
  });
  await copyRows(ask, 'grants', 'scale_agents s', {
    organisation_id: 's.organisation_id',
    id: `md5('grant' || s.number)::uuid::text`,
    agent_id: 's.id',
  });
  // By number, for the rows.
  await ask('alter table scale_agents add primary key (number)');
  await ask('vacuum analyze');
}

/** `insert into <table> select`, from its first row, with other values for some of the columns. */
async function copyRows(
  ask: Database['ask'],
  table: string,
  from: string,
  different: Readonly<Record<string, string>>,
  template = `(select * from ${table} limit 1)`,
): Promise<void> {
  const columns = (
    await ask(
      `select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
      [table],
    )
  ).map(({ name }) => String(name));
  const values = columns.map((name) => different[name] ?? `t.${name}`);
  await ask(`insert into ${table} (${columns.join(', ')}) select ${values.join(', ')} from ${template} t, ${from}`);
}

/**
 * Rows `from` to `to` of `total`, evenly over the months before `until`, each as the broker's own newest read but for its ids, moments, agent,
 * path, result and what looks random. Every second row is of the organisation that is looked at; its agents of small numbers call more often.
 */
export async function makeRows(
  url: string,
  { agents, from, to, until }: { agents: number; from: number; to: number; until: number },
): Promise<void> {
  const sessions = await Promise.all(Array.from({ length: WRITERS }, () => connect(url)));
  let next = from;
  try {
    await Promise.all(
      sessions.map(async ({ ask }) => {
        while (next < to) {
          const first = next;
          next = Math.min(to, first + ROWS_AT_ONCE);
          await copyRows(ask, 'audit_rows', rowSource({ agents, first, end: next, from, to, until }), ROW, TEMPLATE);
        }
      }),
    );
  } finally {
    for (const one of sessions) await one.end();
  }
}

const TEMPLATE = `(select * from audit_rows where kind = 'action' and result = 'allowed' order by id desc limit 1)`;

function rowSource(of: Record<'agents' | 'first' | 'end' | 'from' | 'to' | 'until', number>): string {
  const { agents, first, end, from, to, until } = of;
  const half = Math.floor(agents / 2);
  // The square of an even distribution: a tenth of the agents makes a third of the calls.
  return `(
    select n, md5('row' || n) as random, md5('more' || n) as more,
      ${until - SPAN_MS}::bigint + ((n - ${from})::double precision / ${to - from} * ${SPAN_MS})::bigint as at,
      1 + 2 * least(${half - 1}, (${half} * power(random(), 2))::int) + n % 2 as agent_number
    from generate_series(${first}::bigint, ${end - 1}::bigint) n
  ) r join scale_agents s on s.number = r.agent_number`;
}

const hex = (what: string) => `lpad(to_hex(${what}), 12, '0')`;
const ROW: Readonly<Record<string, string>> = {
  organisation_id: 's.organisation_id',
  id: `substr(${hex('r.at')}, 1, 8) || '-' || substr(${hex('r.at')}, 9) || '-7' || substr(r.random, 1, 3) || '-8' || substr(r.random, 4, 3) || '-' || substr(r.random, 7, 12)`,
  created_at: 'r.at',
  finished_at: 'r.at + 20',
  agent_id: 's.id',
  agent_public_id: 's.agent_id',
  path: `'/items/' || (r.n % 100000)`,
  result: `case when r.n % 1000 = 7 then 'errored' when r.n % 100 < 4 then 'denied' when r.n % 100 < 7 then 'held' else 'allowed' end`,
  reason: `case when r.n % 1000 = 7 then 'upstream_timeout' when r.n % 100 < 4 then 'denied_by_policy' when r.n % 100 < 7 then 'approval_required' else t.reason end`,
  correlation_id: 'r.random::uuid::text',
  row_hash: 'r.random || r.more',
  receipt: `substr(r.more || r.random || r.more, 1, length(t.receipt))`,
};

/** Bytes of the audit: its rows, and each of its indexes. */
export async function sizeOfAudit({ ask }: Database): Promise<{ table: number; indexes: Record<string, number> }> {
  const [table] = await ask(`select sum(pg_table_size(inhrelid))::float8 as bytes from pg_inherits
    where inhparent = 'audit_rows'::regclass`);
  const indexes = await ask(`select p.relname as name, sum(pg_relation_size(i.inhrelid))::float8 as bytes
    from pg_inherits i join pg_class p on p.oid = i.inhparent join pg_index x on x.indexrelid = p.oid
    where x.indrelid = 'audit_rows'::regclass group by 1 order by 1`);
  return {
    table: Number(present(table, 'size').bytes),
    indexes: Object.fromEntries(indexes.map(({ name, bytes }) => [String(name), Number(bytes)])),
  };
}
