/** An agent is revoked while a standing approval for it is being made. */
import { expect, test } from 'vitest';
import { slowCommits, untilCommitting } from '../world/slow-commits.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, WRITE } from '../world/world.ts';

const world = STORES.includes('postgres') ? givenWorld('postgres') : undefined;

test.runIf(world)(
  `a standing approval ends with its agent, which is revoked at that moment${postgresNote}`,
  async () => {
    const organisation = await world!.demoOrganisation();
    const { db } = world!.running.broker.store;
    const agent = await organisation.agent();
    const id = await agent.hold(WRITE);
    await slowCommits(db, 'standing_approvals');
    const standing = { count: 5, for_seconds: 3600, free: [] };
    const approving = organisation.approve(id, { standing });
    await untilCommitting(db);
    const revoked = await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    const approved = await approving;
    expect([revoked.status, approved.status], approved.text).toEqual([200, 200]);
    const made = await db.selectFrom('standing_approvals').select('ended_at').execute();
    expect(made).toEqual([{ ended_at: expect.any(Number) }]);
  },
);
