/** Database faults: rows that the store refuses. */
import { type RawBuilder, sql } from 'kysely';
import type { World } from './world.ts';

/** Faults of a write: of its row, or of the store, so that it may succeed later. As SQLite's statement, and as SQLSTATE. */
const FAULTS = {
  row: [`select raise(abort, 'no')`, '23514'],
  store: [`select json('not JSON')`, '53100'],
} as const;

/** Makes the store refuse rows of a table. Returns a function that ends that. */
async function refuseRows(
  world: World,
  table: string,
  events: readonly ('insert' | 'update')[],
  when?: RawBuilder<unknown>,
  fault: keyof typeof FAULTS = 'row',
): Promise<() => Promise<void>> {
  const { db, dialect } = world.running.broker.store;
  const isSqlite = dialect === 'sqlite';
  if (!isSqlite)
    await sql`create or replace function refuse_row() returns trigger language plpgsql as
      $$ begin raise exception 'no' using errcode = ${sql.lit(FAULTS[fault][1])}; end $$`.execute(db);
  const refusal = isSqlite ? sql`begin ${sql.raw(FAULTS[fault][0])}; end` : sql`execute function refuse_row()`;
  const triggers = events.map((event) => ({ event, name: sql.id(`refused_${event}`) }));
  for (const { event, name } of triggers)
    await sql`create trigger ${name} before ${sql.raw(event)} on ${sql.table(table)}
      for each row ${when ? sql`when (${when})` : sql``} ${refusal}`.execute(db);
  return async () => {
    for (const { name } of triggers)
      await sql`drop trigger ${name} ${isSqlite ? sql`` : sql`on ${sql.table(table)}`}`.execute(
        world.running.broker.store.db,
      );
  };
}

/** Makes the store refuse audit rows, or only final ones. Returns a function that ends that. */
export const refuseAuditRows = (world: World, which: 'all' | 'final' = 'all'): Promise<() => Promise<void>> =>
  refuseRows(world, 'audit_rows', ['insert'], which === 'final' ? sql`new.state = 'final'` : undefined);

/** Makes the store fail at intents of calls, as an outage does. Returns a function that ends that. */
export const failAtIntents = (world: World): Promise<() => Promise<void>> =>
  refuseRows(world, 'audit_rows', ['insert'], sql`new.state = 'intent'`, 'store');

/** Runs `work` while the store refuses audit rows. */
export async function whileAuditRowsAreRefused(world: World, work: () => Promise<void>): Promise<void> {
  const end = await refuseAuditRows(world);
  try {
    await work();
  } finally {
    await end();
  }
}

/** Makes the store refuse tools of MCP servers. Returns a function that ends that. */
export const refuseTools = (world: World): Promise<() => Promise<void>> => refuseRows(world, 'tools', ['insert']);

/** Makes the store refuse records of this kind of the authorization server, new ones and updates. Returns a function that ends that. */
export const refuseOAuthRecords = (world: World, kind: string): Promise<() => Promise<void>> =>
  refuseRows(world, 'oauth_records', ['insert', 'update'], sql`new.kind = ${sql.lit(kind)}`);

/** Makes the store refuse the outcomes of notices. Returns a function that ends that. */
export const refuseOutcomes = (world: World): Promise<() => Promise<void>> =>
  refuseRows(world, 'notice_deliveries', ['insert'], sql`new.step = 'outcome'`);
