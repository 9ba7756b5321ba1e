/** Partitions of `audit_rows` on PostgreSQL (migration 0048): one per month by id (UUIDv7), and a default for all other ids. */

import { type Kysely, sql } from 'kysely';
import { momentOf } from '../crypto/ids.ts';
import type { Instant } from '../policy/facts.ts';
import { MIN_DAYS, PURGED } from '../policy/retention.ts';
import { firstIdOf } from './audit-search.ts';
import { takeLease } from './leases.ts';
import type { Schema } from './schema.ts';
import type { Db, Store } from './store.ts';

const DAY_MS = 24 * 3600 * 1000;
const HOUR_MS = 3600 * 1000;
const LOCK_NOT_AVAILABLE = '55P03';
/** How long before the first row of a month its partition is created. */
const AHEAD_MS = 31 * DAY_MS;
/** Limit of rows that are moved while writers are blocked, for about a second. */
const MAX_MOVED = 20_000;

/** `end`: exclusive upper bound of its ids. */
export type AuditPartition = { name: string; end: string };

/** Lists the partitions without the default one, oldest first. */
export async function listAuditPartitions(db: Db): Promise<AuditPartition[]> {
  const { rows } = await sql<AuditPartition>`
    select c.relname as name, substring(pg_get_expr(c.relpartbound, c.oid) from 'TO [(]''([^'']+)''') as "end"
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit_rows'::regclass and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
    order by 2`.execute(db);
  return rows;
}

/** Creates missing partitions up to a month ahead. No effect on SQLite. Safe to run concurrently in several processes. */
export async function makeAuditPartitions({ db, dialect }: Pick<Store, 'db' | 'dialect'>, now: Instant): Promise<void> {
  if (dialect === 'sqlite') return;
  const covered = (await listAuditPartitions(db)).at(-1)?.end;
  if (covered !== undefined && covered > firstIdOf(now + AHEAD_MS)) return;
  // After a long stop no partitions are needed for the months between, in which there are no ids.
  const from = Math.max(monthOf(now), covered === undefined ? 0 : momentOf(covered));
  for (let month = from; month <= now + AHEAD_MS; month = monthAfter(month)) await makeMonth(db, month);
}

/** Creates the partition of a month, and moves its rows from the default one; with too many rows the month stays in the default. */
async function makeMonth(db: Kysely<Schema>, month: Instant): Promise<void> {
  const [first, end] = [firstIdOf(month), firstIdOf(monthAfter(month))];
  const name = sql.table(`audit_rows_${new Date(month).toISOString().slice(0, 7).replace('-', '_')}`);
  await locked(db, async (tx) => {
    if ((await listAuditPartitions(tx)).some((each) => each.end >= end)) return;
    await sql`lock table audit_rows_default in access exclusive mode`.execute(tx);
    const strays = sql`from audit_rows_default where id >= ${first} and id < ${end}`;
    const { rows } = await sql`select 1 ${strays} limit ${MAX_MOVED + 1}`.execute(tx);
    if (rows.length > MAX_MOVED) return;
    // Created as a separate table first: "partition of" would lock out writers of all months.
    await sql`create table ${name} (like audit_rows including defaults including constraints including indexes)
      with (toast_tuple_target = 8160)`.execute(tx);
    await sql`with moved as (delete ${strays} returning *) insert into ${name} select * from moved`.execute(tx);
    await sql`alter table audit_rows attach partition ${name}
      for values from (${sql.lit(first)}) to (${sql.lit(end)})`.execute(tx);
  });
}

/**
 * Drops partitions of past months that hold nothing but events about deletions; these events move to the default partition. Runs at most
 * once an hour in one process (lease). No effect on SQLite. Returns the names of the dropped partitions.
 */
export async function dropEmptyAuditPartitions(
  { db, dialect }: Pick<Store, 'db' | 'dialect'>,
  { now, holder }: { now: Instant; holder: string },
): Promise<string[]> {
  if (dialect === 'sqlite') return [];
  const lease = { name: 'audit-partitions', holder, now, until: now + HOUR_MS };
  if ((await takeLease(db, lease)) === undefined) return [];
  const dropped: string[] = [];
  // The minimum retention: no organisation deletes newer rows.
  const past = firstIdOf(now - MIN_DAYS * DAY_MS);
  for (const { name, end } of await listAuditPartitions(db))
    if (end <= past && (await isEmpty(db, name)) && (await dropEmpty(db, name))) dropped.push(name);
  return dropped;
}

/** Queries by primary key, whose index vacuum clears of deleted rows; the table itself may still hold gigabytes of them. */
async function isEmpty(db: Db, name: string): Promise<boolean> {
  const table = sql.table(name);
  const kept = sql`kind = 'event' and reason = ${PURGED}`;
  const other = sql`select 1 from ${table} where not (${kept}) order by organisation_id, id limit 1`;
  if ((await other.execute(db)).rows.length > 0) return false;
  const some = sql`select 1 from ${table} order by organisation_id, id limit ${MAX_MOVED + 1}`;
  return (await some.execute(db)).rows.length <= MAX_MOVED;
}

async function dropEmpty(db: Kysely<Schema>, name: string): Promise<boolean> {
  const table = sql.table(name);
  const done = await locked(db, async (tx) => {
    // This lock blocks only writers to this past month; the locks that follow block everybody, briefly.
    await sql`lock table ${table} in share row exclusive mode`.execute(tx);
    if (!(await isEmpty(tx, name))) return false;
    await sql`alter table audit_rows detach partition ${table}`.execute(tx);
    // Inserted directly, because the trigger of audit_rows would add the events to the receipt log again.
    await sql`insert into audit_rows_default select * from ${table} order by organisation_id, id`.execute(tx);
    await sql`drop table ${table}`.execute(tx);
    return true;
  });
  return done === true;
}

/**
 * Runs `work` in one transaction with a short lock timeout, because everybody else queues behind a waiting lock. Undefined: the table is
 * locked for longer, by a dump for instance; the next round retries.
 */
async function locked<Done>(db: Kysely<Schema>, work: (tx: Db) => Promise<Done>): Promise<Done | undefined> {
  try {
    return await db.transaction().execute(async (tx) => {
      await sql`set local lock_timeout = '500ms'`.execute(tx);
      await sql`select pg_advisory_xact_lock(4848480049)`.execute(tx);
      return await work(tx);
    });
  } catch (error) {
    if ((error as { code?: unknown }).code === LOCK_NOT_AVAILABLE) return undefined;
    throw error;
  }
}

function monthOf(at: Instant): Instant {
  const day = new Date(at);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth());
}

function monthAfter(at: Instant): Instant {
  const day = new Date(at);
  return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1);
}
