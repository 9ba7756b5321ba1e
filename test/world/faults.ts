/** Database faults: rows that the store refuses. */
import { sql } from 'kysely';
import type { World } from './world.ts';

/** Makes the store refuse audit rows, or only final ones. Returns a function that ends that. */
export async function refuseAuditRows(world: World, which: 'all' | 'final' = 'all'): Promise<() => Promise<void>> {
  const { db, dialect } = world.running.broker.store;
  const when = which === 'final' ? sql`when (new.state = 'final')` : sql``;
  if (dialect === 'sqlite') {
    await sql`create trigger full_disk before insert on audit_rows ${when} begin select raise(abort, 'no'); end`.execute(
      db,
    );
    return async () => {
      await sql`drop trigger full_disk`.execute(db);
    };
  }
  await sql`create or replace function refuse_row() returns trigger language plpgsql as
    $$ begin raise exception 'no' using errcode = '23514'; end $$`.execute(db);
  await sql`create trigger full_disk before insert on audit_rows for each row ${when} execute function refuse_row()`.execute(
    db,
  );
  return async () => {
    await sql`drop trigger full_disk on audit_rows`.execute(db);
  };
}

/** Makes the store refuse tools of MCP servers. Returns a function that ends that. */
export async function refuseTools(world: World): Promise<() => Promise<void>> {
  const { db, dialect } = world.running.broker.store;
  if (dialect === 'sqlite') {
    await sql`create trigger no_tools before insert on tools begin select raise(abort, 'no'); end`.execute(db);
    return async () => {
      await sql`drop trigger no_tools`.execute(db);
    };
  }
  await sql`create or replace function refuse_row() returns trigger language plpgsql as
    $$ begin raise exception 'no' using errcode = '23514'; end $$`.execute(db);
  await sql`create trigger no_tools before insert on tools for each row execute function refuse_row()`.execute(db);
  return async () => {
    await sql`drop trigger no_tools on tools`.execute(db);
  };
}

/** Makes the store refuse records of this kind of the authorization server, new ones and updates. Returns a function that ends that. */
export async function refuseOAuthRecords(world: World, kind: string): Promise<() => Promise<void>> {
  const { db, dialect } = world.running.broker.store;
  const events = ['insert', 'update'];
  const is = sql`new.kind = ${sql.lit(kind)}`;
  if (dialect === 'sqlite') {
    for (const event of events)
      await sql`create trigger ${sql.id(`no_${event}`)} before ${sql.raw(event)} on oauth_records when ${is}
        begin select raise(abort, 'no'); end`.execute(db);
    return async () => {
      for (const event of events) await sql`drop trigger ${sql.id(`no_${event}`)}`.execute(db);
    };
  }
  await sql`create or replace function refuse_row() returns trigger language plpgsql as
    $$ begin raise exception 'no' using errcode = '23514'; end $$`.execute(db);
  await sql`create trigger no_record before insert or update on oauth_records
    for each row when (${is}) execute function refuse_row()`.execute(db);
  return async () => {
    await sql`drop trigger no_record on oauth_records`.execute(db);
  };
}
