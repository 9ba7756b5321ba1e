/** An agent is revoked while an owner makes a credential for it: the credential ends with the agent, and is not listed as live. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { givenWorld } from '../world/fixtures.ts';
import { postgresNote, STORES } from '../world/stores.ts';

describe.runIf(STORES.includes('postgres'))(`an agent that is revoked meanwhile${postgresNote}`, () => {
  const world = givenWorld('postgres');

  test.each([
    [
      'static key',
      'static_keys',
      'static-keys',
      { label: 'ci', connection: 'demo-main', expires_in_seconds: 3600 },
      sql<boolean>`ended_at is not null`,
    ],
    ['bootstrap token', 'one_time_tokens', 'bootstrap-token', { rotate: true }, sql<boolean>`used_at is not null`],
  ])('leaves no usable %s', async (_, table, route, body, isEnded) => {
    const organisation = await world.demoOrganisation();
    const { db } = world.running.broker.store;
    const agent = await organisation.agent();
    const path = `/owner/agents/${agent.agentId}`;
    // The transaction that makes it takes a second to commit.
    await sql
      .raw(
        `create function slow_${table}() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return null; end $$;
         create constraint trigger slow after insert on ${table} deferrable initially deferred for each row execute function slow_${table}()`,
      )
      .execute(db);
    const making = organisation.ask('POST', `${path}/${route}`, body);
    await expect
      .poll(async () => {
        const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
          where datname = current_database() and state = 'active' and lower(query) = 'commit'`.execute(db);
        return rows[0]?.n;
      })
      .toBe(1);
    const revoked = await organisation.ask('POST', `${path}/revoke`, {});
    const made = await making;
    expect([revoked.status, made.status < 300], made.text).toEqual([200, true]);
    const { rows } = await sql<{ ended: boolean }>`select ${isEnded} as ended from ${sql.table(table)}`.execute(db);
    expect(rows).toEqual([{ ended: true }]);
  });
});
