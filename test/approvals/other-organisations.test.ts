/** An organisation whose agents' calls are all held does not occupy the connections to PostgreSQL at the expense of others. */
import { describe, expect, test } from 'vitest';
import { givenWorld } from '../world/fixtures.ts';
import { WRITE } from '../world/requests.ts';
import { slowCommits, untilCommitting } from '../world/slow-commits.ts';
import { postgresNote, STORES } from '../world/stores.ts';

const HELD = 12;

describe.runIf(STORES.includes('postgres'))(`calls that are held${postgresNote}`, () => {
  const world = givenWorld('postgres');

  test('do not delay the held calls and the owners of another organisation', async () => {
    const [busy, other] = [await world.demoOrganisation(), await world.demoOrganisation()];
    const agents = await Promise.all(Array.from({ length: HELD }, () => busy.agent()));
    const caller = await other.agent();
    await slowCommits(world.running.broker.store.db, 'approvals');
    let answered = 0;
    const holds = agents.map(async (agent) => {
      const { status, text } = await agent.act(WRITE);
      answered++;
      expect(status, text).toBe(202);
    });
    await untilCommitting(world.running.broker.store.db, 2);
    const before = answered;
    const read = await other.ask('GET', '/owner/agents');
    expect([read.status, answered - before < HELD / 2]).toEqual([200, true]);
    const held = await caller.act(WRITE);
    // Each takes a second. Without a limit it was the last one.
    expect([held.status, answered < HELD / 2]).toEqual([202, true]);
    await Promise.all(holds);
  });
});
