/** Agents of one organisation do not occupy the connections to PostgreSQL at the expense of other organisations. */
import { describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { slowCommits, untilCommitting } from '../world/slow-commits.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, WRITE } from '../world/world.ts';

const AGENTS = 12;
const CHILD = JSON.stringify({ grants: [{ platform: 'demo', scopes: ['demo:read'] }] });

const hold = (agent: TestAgent) => agent.act(WRITE);
const makeChild = (agent: TestAgent) =>
  agent.request('POST', '/v1/agents/children', { body: CHILD, headers: { 'content-type': 'application/json' } });

describe.runIf(STORES.includes('postgres'))(`many transactions of one organisation${postgresNote}`, () => {
  const world = givenWorld('postgres', { DATABASE_CONNECTIONS: '12' });

  test.each([
    ['held calls', hold, 202, 'approvals'],
    ['new children', makeChild, 201, 'agents'],
  ] as const)('for %s do not delay those of another organisation, or its owners', async (_, ask, status, table) => {
    const [busy, other] = [await world.demoOrganisation(), await world.demoOrganisation()];
    const agents = await Promise.all(Array.from({ length: AGENTS }, () => busy.agent()));
    const caller = await other.agent();
    // Each transaction takes a second.
    await slowCommits(world.db, table);
    let answered = 0;
    const all = agents.map(async (agent) => {
      const answer = await ask(agent);
      answered++;
      // Those that waited for 5 seconds are given up before anything was stored.
      expect([status, 503], answer.text).toContain(answer.status);
    });
    await untilCommitting(world.db, 2);
    const read = await other.ask('GET', '/owner/agents');
    expect([read.status, answered < AGENTS / 2]).toEqual([200, true]);
    const own = await ask(caller);
    expect([own.status, answered < AGENTS / 2], own.text).toEqual([status, true]);
    await Promise.all(all);
  });
});
