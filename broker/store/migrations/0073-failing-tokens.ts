import { type Kysely, sql } from 'kysely';
import type { Store } from '../store.ts';
import { type NoticeTrigger, noticeTriggers } from './0034-notices.ts';

const OF_CONNECTIONS = {
  table: 'connections',
  on: 'update',
  of: 'status, attention',
  platform: 'platform_id',
} as const satisfies Partial<NoticeTrigger>;

/** The events of 0034 about connections, now also for a connection that gets no token. */
const EVENTS: readonly NoticeTrigger[] = [
  {
    ...OF_CONNECTIONS,
    when: "(old.status <> 'reauth_needed' and new.status = 'reauth_needed') or (old.attention = 0 and new.attention = 1)",
    event: 'connection_broken',
  },
  {
    ...OF_CONNECTIONS,
    when: "(old.status = 'reauth_needed' or old.attention = 1) and new.status <> 'reauth_needed' and new.attention = 0",
    event: 'connection_settled',
  },
];

/**
 * `failing`: why a connection whose tokens are issued without a person has got none lately, as JSON; null: the last request succeeded, or there was none.
 * `attention`: whether a connection has got no token for a while, of OAuth connections too.
 */
export async function failingTokens(db: Kysely<unknown>, dialect: Store['dialect']): Promise<void> {
  await db.schema.alterTable('connections').addColumn('failing', 'text').execute();
  await db.schema
    .alterTable('connections')
    .addColumn('attention', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  const dropped = EVENTS.flatMap(({ event }) =>
    dialect === 'sqlite'
      ? [`drop trigger tell_${event}`]
      : [`drop trigger tell_${event} on connections`, `drop function tell_${event}()`],
  );
  for (const statement of [...dropped, ...noticeTriggers(EVENTS, dialect)]) await sql.raw(statement).execute(db);
}
