import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';

/** A random uuid and the time in milliseconds, as in the triggers of 0034. */
const EXPRESSIONS = {
  sqlite: {
    id: `lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-8' ||
    substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))`,
    time: `cast(unixepoch('subsec') * 1000 as integer)`,
  },
  postgres: { id: 'gen_random_uuid()::text', time: '(extract(epoch from clock_timestamp()) * 1000)::bigint' },
} as const;

/** The events that change whether the approvals of an owner count. */
const CHANGES = [
  { name: 'tell_approver_removed', occasion: 'after delete on owners', when: 'true' },
  { name: 'tell_approver_changed', occasion: 'after update of role on owners', when: 'old.role <> new.role' },
] as const;

/**
 * What changes while a call is held. `credential_replaced_at`: when the credential of a connection was last replaced by another one, not renewed; null:
 * never, or before this column. The triggers put a notice into the outbox for each pending call that an owner had approved who is removed, or gets
 * another role: messages about it name those whose approvals count.
 */
export async function whileHeld(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema.alterTable('connections').addColumn('credential_replaced_at', 'bigint').execute();
  const { id, time } = EXPRESSIONS[dialect];
  const insert = `insert into notices (organisation_id, id, event, subject_id, agent_id, platform_id, created_at)
    select p.organisation_id, ${id}, 'call_changed', p.id, null, null, ${time} from approvals p
    where p.organisation_id = old.organisation_id and p.status = 'pending' and p.approved_before like '%"' || old.id || '"%'
      and exists (select 1 from notice_channels c where c.organisation_id = old.organisation_id and c.status <> 'gone')`;
  const statements = CHANGES.flatMap(({ name, occasion, when }) =>
    dialect === 'sqlite'
      ? [`create trigger ${name} ${occasion} when ${when} begin ${insert}; end`]
      : [
          `create function ${name}() returns trigger language plpgsql as $$ begin ${insert}; return null; end $$`,
          `create trigger ${name} ${occasion} for each row when (${when}) execute function ${name}()`,
        ],
  );
  for (const statement of statements) await sql.raw(statement).execute(db);
}
