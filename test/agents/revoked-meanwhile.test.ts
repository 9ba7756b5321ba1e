/** An agent is revoked while an owner makes a credential for it: the credential ends with the agent, and is not listed as live. */
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { givenWorld } from '../world/fixtures.ts';
import { slowCommits, untilCommitting } from '../world/slow-commits.ts';
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
    await slowCommits(db, table);
    const making = organisation.ask('POST', `${path}/${route}`, body);
    await untilCommitting(db);
    const revoked = await organisation.ask('POST', `${path}/revoke`, {});
    const made = await making;
    expect([revoked.status, made.status < 300], made.text).toEqual([200, true]);
    const { rows } = await sql<{ ended: boolean }>`select ${isEnded} as ended from ${sql.table(table)}`.execute(db);
    expect(rows).toEqual([{ ended: true }]);
  });
});
