import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';
import type { ColumnTypes } from './0001-foundation.ts';

export type NoticeTrigger = {
  table: string;
  on: 'insert' | 'update';
  /** For an update: the columns whose change creates the notice. */
  of?: string;
  when: string;
  event: string;
  subject?: string;
  agent?: string;
  platform?: string;
};

const WAITS = "new.status = 'pending'";
const IS_OVER = "old.status = 'pending' and new.status <> 'pending'";

/** The events that create notices, by the change of a row. */
const EVENTS: readonly NoticeTrigger[] = [
  { table: 'approvals', on: 'insert', when: WAITS, event: 'call_held', agent: 'agent_id', platform: 'platform_id' },
  { table: 'approvals', on: 'update', of: 'status', when: IS_OVER, event: 'call_settled' },
  {
    table: 'access_requests',
    on: 'insert',
    when: WAITS,
    event: 'access_requested',
    agent: 'agent_id',
    platform: 'platform_id',
  },
  { table: 'access_requests', on: 'update', of: 'status', when: IS_OVER, event: 'access_settled' },
  {
    table: 'registrations',
    on: 'insert',
    when: `${WAITS} and new.organisation_id is not null`,
    event: 'registration_waiting',
  },
  {
    table: 'registrations',
    on: 'update',
    of: 'status',
    when: `${IS_OVER} and new.organisation_id is not null`,
    event: 'registration_settled',
  },
  {
    table: 'agents',
    on: 'update',
    of: 'status',
    when: "old.status <> 'suspended' and new.status = 'suspended'",
    event: 'agent_suspended',
    agent: 'id',
  },
  {
    table: 'agents',
    on: 'update',
    of: 'status',
    when: "old.status = 'suspended' and new.status <> 'suspended'",
    event: 'agent_settled',
  },
  {
    table: 'connections',
    on: 'update',
    of: 'status',
    when: "old.status <> 'reauth_needed' and new.status = 'reauth_needed'",
    event: 'connection_broken',
    platform: 'platform_id',
  },
  {
    table: 'connections',
    on: 'update',
    of: 'status',
    when: "old.status = 'reauth_needed' and new.status <> 'reauth_needed'",
    event: 'connection_settled',
  },
];

/** The columns of channels that a governance file covers; channels of one person are in no file. */
const GOVERNED = ['name', 'kind', 'settings', 'secret', 'secret_reference', 'rules', 'origin'];

/**
 * Notices. `notices` is the outbox: the database itself inserts a row in the transaction of the change, whoever makes it, if the organisation
 * has a channel; nothing else happens there. A sender expands each row into `notice_deliveries`, one per channel that wants it. `leases`:
 * at most one process at a time does a piece of work; `fence` grows with each holder.
 */
export async function notices(db: Kysely<unknown>, types: ColumnTypes, dialect: Store['dialect']): Promise<void> {
  await db.schema
    .createTable('leases')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('holder', 'text')
    .addColumn('until', 'bigint', (c) => c.notNull())
    .addColumn('fence', 'bigint', (c) => c.notNull())
    .execute();
  await db.schema
    .createTable('notices')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('event', 'text', (c) => c.notNull())
    .addColumn('subject_id', 'text', (c) => c.notNull())
    .addColumn('agent_id', 'text')
    .addColumn('platform_id', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('notices_key', ['organisation_id', 'id'])
    .execute();
  await db.schema.createIndex('notices_next').on('notices').columns(['created_at', 'id']).execute();
  await db.schema
    .createTable('notice_channels')
    .addColumn('organisation_id', 'text', (c) => c.notNull().references('organisations.id'))
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('kind', 'text', (c) => c.notNull())
    .addColumn('settings', 'text', (c) => c.notNull())
    .addColumn('secret', types.bytes)
    .addColumn('secret_reference', 'text')
    .addColumn('owner_id', 'text')
    .addColumn('rules', 'text', (c) => c.notNull())
    .addColumn('status', 'text', (c) => c.notNull().check(sql`status in ('active', 'failing', 'gone')`))
    .addColumn('last_ok_at', 'bigint')
    .addColumn('last_error', 'text')
    .addColumn('origin', 'text', (c) => c.notNull().check(sql`origin in ('governance', 'owner')`))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('notice_channels_key', ['organisation_id', 'id'])
    .addUniqueConstraint('notice_channels_name', ['organisation_id', 'name'])
    .addForeignKeyConstraint(
      'notice_channels_owner',
      ['organisation_id', 'owner_id'],
      'owners',
      ['organisation_id', 'id'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  await db.schema
    .createTable('notice_deliveries')
    .addColumn('organisation_id', 'text', (c) => c.notNull())
    .addColumn('id', 'text', (c) => c.notNull())
    .addColumn('channel_id', 'text', (c) => c.notNull())
    .addColumn('notice_id', 'text', (c) => c.notNull())
    .addColumn('event', 'text', (c) => c.notNull())
    .addColumn('subject_id', 'text', (c) => c.notNull())
    .addColumn('step', 'text', (c) => c.notNull().check(sql`step in ('first', 'reminder', 'outcome')`))
    .addColumn('due_at', 'bigint', (c) => c.notNull())
    .addColumn('attempts', 'integer', (c) => c.notNull())
    .addColumn('state', 'text', (c) => c.notNull().check(sql`state in ('due', 'sent', 'over', 'gave_up')`))
    .addColumn('external_ref', 'text')
    .addColumn('last_error', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('notice_deliveries_key', ['organisation_id', 'id'])
    .addUniqueConstraint('notice_deliveries_once', ['organisation_id', 'channel_id', 'notice_id', 'step'])
    .addForeignKeyConstraint(
      'notice_deliveries_channel',
      ['organisation_id', 'channel_id'],
      'notice_channels',
      ['organisation_id', 'id'],
      (c) => c.onDelete('cascade'),
    )
    .execute();
  await sql`create index notice_deliveries_due on notice_deliveries (organisation_id, channel_id, due_at) where state = 'due'`.execute(
    db,
  );
  await db.schema
    .createIndex('notice_deliveries_of_subject')
    .on('notice_deliveries')
    .columns(['organisation_id', 'subject_id'])
    .execute();
  await db.schema.createIndex('notice_deliveries_old').on('notice_deliveries').column('created_at').execute();
  for (const statement of dialect === 'sqlite' ? onSqlite() : onPostgres()) await sql.raw(statement).execute(db);
}

/** The insert of a new row in the outbox; `id` and `time` are expressions of the database. */
const rowOf = ({ event, subject = 'id', agent, platform }: NoticeTrigger, id: string, time: string): string =>
  `insert into notices (organisation_id, id, event, subject_id, agent_id, platform_id, created_at)
   select new.organisation_id, ${id}, '${event}', new.${subject}, ${agent ? `new.${agent}` : 'null'},
     ${platform ? `new.${platform}` : 'null'}, ${time}
   where exists (select 1 from notice_channels c where c.organisation_id = new.organisation_id and c.status <> 'gone')`;

const occasion = ({ on, of, table }: NoticeTrigger): string => `after ${on}${of ? ` of ${of}` : ''} on ${table}`;

/** Statements that create the triggers. */
export function noticeTriggers(all: readonly NoticeTrigger[], dialect: Store['dialect']): string[] {
  if (dialect === 'sqlite') {
    // A uuid of version 4 (RFC 9562 section 5.4).
    const id = `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' ||
    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`;
    const time = `cast(unixepoch('subsec') * 1000 as integer)`;
    return all.map(
      (told) =>
        `create trigger tell_${told.event} ${occasion(told)} when ${told.when} begin ${rowOf(told, id, time)}; end`,
    );
  }
  const id = 'gen_random_uuid()::text';
  const time = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
  return all.flatMap((told) => [
    `create function tell_${told.event}() returns trigger language plpgsql as $$
       begin ${rowOf(told, id, time)}; return null; end $$`,
    `create trigger tell_${told.event} ${occasion(told)} for each row when (${told.when})
       execute function tell_${told.event}()`,
  ]);
}

function onSqlite(): string[] {
  const governed = (['insert', 'update', 'delete'] as const).map((on) => {
    const row = on === 'delete' ? 'old' : 'new';
    const differs = GOVERNED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
    return `create trigger governance_version_notice_channels_${on} after ${on} on notice_channels
      when ${row}.owner_id is null ${on === 'update' ? `and (${differs})` : ''}
      begin
        insert into governance_versions (organisation_id, version) values (${row}.organisation_id, hex(randomblob(16)))
          on conflict (organisation_id) do update set version = excluded.version;
      end`;
  });
  return [...noticeTriggers(EVENTS, 'sqlite'), ...governed];
}

function onPostgres(): string[] {
  const governed = (['insert', 'update', 'delete'] as const).map((on) => {
    const row = on === 'delete' ? 'old' : 'new';
    const differs = GOVERNED.map((one) => `old.${one} is distinct from new.${one}`).join(' or ');
    return `create constraint trigger governance_version_notice_channels_${on} after ${on} on notice_channels
      deferrable initially deferred for each row when (${row}.owner_id is null ${on === 'update' ? `and (${differs})` : ''})
      execute function renew_governance_version()`;
  });
  return [...noticeTriggers(EVENTS, 'postgres'), ...governed];
}
