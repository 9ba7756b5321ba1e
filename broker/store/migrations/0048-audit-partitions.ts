import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import type { Store } from '../store.ts';

const BOUND = 'audit_rows_bound';
/** Arbitrary id of an advisory lock that nothing else uses. */
const LOCK = 4_848_480_048;
const AHEAD_MS = 31 * 24 * 3600 * 1000;
const LOCK_NOT_AVAILABLE = '55P03';
/** Attempts to lock the table, each with a timeout of two seconds, during which calls that write to it wait. */
const TRIES = 30;

/**
 * On PostgreSQL `audit_rows` becomes partitioned by range of its id, which sorts by time (UUIDv7). The existing table becomes the first
 * partition, up to the beginning of a month, without being rewritten or scanned: `boundAuditRows` has validated its upper bound before.
 * A background job creates later months (audit-partitions.ts); the default partition takes all other ids.
 */
export async function auditPartitions(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  // In the order in which agents are listed, so that a page of a million agents needs no sort of all.
  await sql`create index agents_by_name on agents
    (organisation_id, ((case when status = 'revoked' then '1' else '0' end) || lower(name)), id)`.execute(db);
  await sql`create index agents_by_creation on agents (organisation_id, created_at, id)`.execute(db);
  if (dialect === 'sqlite') return;
  const run: Run = (statement) => sql.raw(statement).execute(db);
  await lockAuditRows(run);
  const { rows } = await sql<{ end: string }>`
    select substring(pg_get_constraintdef(oid) from '''([^'']+)''') as end from pg_constraint
    where conrelid = 'audit_rows'::regclass and conname = ${BOUND}`.execute(db);
  const end = rows[0]?.end ?? firstIdAfter(Date.now() + AHEAD_MS);
  for (const statement of STATEMENTS) await run(statement.replace('$end', end));
}

const STATEMENTS = [
  'alter table audit_rows rename to audit_rows_before',
  'alter index audit_rows_key rename to audit_rows_before_key',
  'alter index audit_rows_intents rename to audit_rows_before_intents',
  'alter index audit_rows_of_agent rename to audit_rows_before_of_agent',
  'drop trigger log_final_insert on audit_rows_before',
  'drop trigger log_final_update on audit_rows_before',
  `create table audit_rows (like audit_rows_before including defaults including constraints,
     constraint audit_rows_key primary key (organisation_id, id)) partition by range (id)`,
  `alter table audit_rows drop constraint if exists ${BOUND}`,
  // The same indexes as before: the existing ones become their partitions.
  `create index audit_rows_intents on audit_rows (instance_id) where state = 'intent'`,
  `create index audit_rows_of_agent on audit_rows (organisation_id, agent_id, id, kind, result)
     where agent_id is not null`,
  `alter table audit_rows attach partition audit_rows_before for values from (minvalue) to ('$end')`,
  `alter table audit_rows_before drop constraint if exists ${BOUND}`,
  'create table audit_rows_default partition of audit_rows default with (toast_tuple_target = 8160)',
  `create trigger log_final_insert after insert on audit_rows referencing new table as new_rows
     for each statement execute function log_inserted_rows()`,
  `create trigger log_final_update after update on audit_rows referencing old table as old_rows new table as new_rows
     for each statement execute function log_updated_rows()`,
];

type Run = (statement: string) => Promise<unknown>;

/**
 * Locks the table in a transaction. A waiting lock blocks all others behind it, so the lock has a short timeout and is retried while a dump
 * or an export is running.
 */
async function lockAuditRows(run: Run): Promise<void> {
  await run(`set local lock_timeout = '2s'`);
  for (let tried = 1; ; tried++) {
    await run('savepoint before_lock');
    try {
      await run('lock table audit_rows in access exclusive mode');
      await run('set local lock_timeout to default');
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== LOCK_NOT_AVAILABLE || tried === TRIES) throw error;
      await run('rollback to savepoint before_lock');
      await run('select pg_sleep(1)');
    }
  }
}

/**
 * Runs before the migration, outside of its transaction: validates, by a constraint, that all rows end before a month that is at least 31
 * days away. Scanning a hundred million rows takes minutes, but blocks nobody. Returns a function that drops the constraint when the
 * migration fails: the previous release could not write any more once that month begins.
 */
export async function boundAuditRows({ appendTo }: Pick<Store, 'appendTo'>): Promise<() => Promise<void>> {
  if (appendTo.dialect === 'sqlite') return async () => {};
  const { url } = appendTo;
  await onConnection(url, async (client) => {
    // Of concurrently starting processes one does this, and the others wait.
    await client.query('select pg_advisory_lock($1)', [LOCK]);
    try {
      await bound(client);
    } catch (error) {
      await client.query('rollback');
      // Ignored when another process has migrated the table while this one waited for it.
      if (await isThere(client, PLAIN)) throw error;
    }
  });
  return () =>
    onConnection(url, async (client) => {
      if (await isThere(client, BOUNDED)) await changeBound(client, `drop constraint ${BOUND}`);
    });
}

async function bound(client: pg.Client): Promise<void> {
  if (!(await isThere(client, PLAIN))) return;
  if (!(await isThere(client, BOUNDED))) {
    const end = firstIdAfter(Date.now() + AHEAD_MS);
    const newest = 'select max(id) as id from audit_rows where id >= $1';
    const late = (await client.query<{ id: string | null }>(newest, [end])).rows[0]?.id;
    const before = late == null ? end : firstIdAfter(timeOf(late));
    await changeBound(client, `add constraint ${BOUND} check (id < '${before}') not valid`);
  }
  await client.query(`alter table audit_rows validate constraint ${BOUND}`);
}

async function changeBound(client: pg.Client, change: string): Promise<void> {
  const run: Run = (statement) => client.query(statement);
  await run('begin');
  await lockAuditRows(run);
  // Not on the table if another process has partitioned it meanwhile: it would reject rows after the bound.
  if (await isThere(client, PLAIN)) await run(`alter table audit_rows ${change}`);
  await run('commit');
}

const PLAIN = `pg_class where oid = to_regclass('audit_rows') and relkind = 'r'`;
const BOUNDED = `pg_constraint where conrelid = to_regclass('audit_rows') and conname = '${BOUND}'`;

const isThere = async (client: pg.Client, condition: string): Promise<boolean> =>
  (await client.query(`select 1 from ${condition}`)).rows.length > 0;

/** Uses a connection of its own: statements of the pool time out after 15 s. */
async function onConnection(url: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url, application_name: 'agent-broker migration' });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

/** Returns the first id (UUIDv7) of the first month that begins after this instant. */
function firstIdAfter(at: number): string {
  const day = new Date(at);
  const month = Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1);
  const time = month.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

const timeOf = (id: string): number => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
