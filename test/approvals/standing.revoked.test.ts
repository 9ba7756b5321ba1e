/** An agent is revoked while a standing approval for it is being made. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { givenWorld } from '../world/fixtures.ts';
import { WRITE } from '../world/requests.ts';
import { postgresNote, STORES } from '../world/stores.ts';

const world = STORES.includes('postgres') ? givenWorld('postgres') : undefined;

test.runIf(world)(
  `a standing approval ends with its agent, which is revoked at that moment${postgresNote}`,
  async () => {
    const organisation = await world!.demoOrganisation();
    const { db } = world!.running.broker.store;
    const agent = await organisation.agent();
    const { approval_id: id } = (await agent.act(WRITE)).body;
    // The transaction of the approval takes a second to commit.
    await sql
      .raw(
        `create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(1); return null; end $$;
       create constraint trigger slow after insert on standing_approvals deferrable initially deferred for each row execute function slow()`,
      )
      .execute(db);
    const standing = { count: 5, for_seconds: 3600, free: [] };
    const approving = organisation.ask('POST', `/owner/approvals/${id}/approve`, { standing });
    await expect
      .poll(async () => {
        const { rows } = await sql<{ n: number }>`select count(*)::int as n from pg_stat_activity
        where datname = current_database() and state = 'active' and lower(query) = 'commit'`.execute(db);
        return rows[0]?.n;
      })
      .toBe(1);
    const revoked = await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    const approved = await approving;
    expect([revoked.status, approved.status], approved.text).toEqual([200, 200]);
    const made = await db.selectFrom('standing_approvals').select('ended_at').execute();
    expect(made).toEqual([{ ended_at: expect.any(Number) }]);
  },
);
