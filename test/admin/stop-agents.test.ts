/** Stopping all agents: in force at the next call on every replica, for later agents too, and undone exactly. */
import { describe, expect, test } from 'vitest';
import { childOf } from '../world/child.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, READ, WRITE } from '../world/world.ts';

describe.each(STORES)(`stopping all agents on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);

  test('the next call of each agent is refused, with the reason; resuming restores exactly the state before', async () => {
    const organisation = await world.demoOrganisation();
    const other = await world.demoOrganisation();
    const [one, two, away] = await Promise.all([organisation.agent(), organisation.agent(), other.agent()]);
    const before = await organisation.agent();
    const between = await organisation.agent();
    const child = await childOf(world, organisation, one, { name: 'reader' });
    await organisation.ask('POST', `/owner/agents/${before.agentId}/suspend`, { reason: 'by itself' });
    for (const agent of [one, two, away]) expect((await agent.act(READ)).status).toBe(200);
    const stopped = await organisation.ask('POST', '/owner/agents/suspend-all', { reason: 'fire drill' });
    expect(stopped.body).toMatchObject({ by: organisation.owner.id, reason: 'fire drill', agents: 4 });
    for (const agent of [one, two, between, child])
      expect((await agent.act(READ)).body).toMatchObject({
        reason: 'agent_suspended',
        halt: { state: 'suspended', cause: 'owner_manual', detail: 'fire drill' },
      });
    expect((await before.act(READ)).body.halt.detail).toBe('by itself');
    expect((await away.act(READ)).status).toBe(200);
    // Agents that are added later are stopped, too; an agent that is suspended meanwhile stays so.
    const late = await organisation.agent();
    expect((await late.act(READ)).status).toBe(403);
    await organisation.ask('POST', `/owner/agents/${between.agentId}/suspend`, {});
    expect((await organisation.ask('GET', '/owner/organisation')).body.agents_stopped.reason).toBe('fire drill');
    const listed = (await organisation.ask('GET', `/owner/agents/${one.agentId}`)).body;
    expect([listed.status, listed.contained]).toEqual(['active', 'all_stopped']);
    expect((await organisation.ask('POST', '/owner/agents/resume-all')).status).toBe(200);
    for (const agent of [one, two, late, child]) expect((await agent.act(READ)).status).toBe(200);
    for (const agent of [before, between]) expect((await agent.act(READ)).status).toBe(403);
    expect((await organisation.ask('GET', '/owner/organisation')).body.agents_stopped).toBeNull();
  });

  test('pending calls stay pending, and an approval during the stop makes no call', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const held = await agent.hold(WRITE);
    await organisation.ask('POST', '/owner/agents/suspend-all');
    expect(await organisation.pending()).toHaveLength(1);
    world.upstream.seen.length = 0;
    const { request_hash, agent: shown } = (await organisation.ask('GET', `/owner/approvals/${held}`)).body;
    expect(shown).toMatchObject({ status: 'active', suspended: true });
    const decided = await organisation.approve(held, { request_hash });
    expect(decided.body.execution_error, decided.text).toContain('agent_suspended');
    expect(world.upstream.seen).toEqual([]);
  });

  test('it is recorded in one row with the count and a receipt; when that fails, nothing is stopped', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const again = await refuseAuditRows(world);
    expectEnvelope(await organisation.ask('POST', '/owner/agents/suspend-all'), 503, 'audit_unavailable');
    await again();
    expect((await agent.act(READ)).status).toBe(200);
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => organisation.ask('POST', '/owner/agents/suspend-all', { reason: 'now' })),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409]);
    const rows = (await organisation.ask('GET', '/owner/audit?reason=all_agents_stopped')).body.rows;
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      kind: 'event',
      detail: 'now',
      flags: { change: { agents: 1, by: organisation.owner.id } },
    });
    expect(rows[0].receipt_kid).not.toBeNull();
    await organisation.ask('POST', '/owner/agents/resume-all');
    expectEnvelope(await organisation.ask('POST', '/owner/agents/resume-all'), 409, 'conflict');
  });

  test('an approver and a viewer cannot stop agents', async () => {
    const organisation = await world.demoOrganisation();
    for (const role of ['approver', 'viewer'] as const) {
      const by = await organisation.addOwner(role);
      for (const verb of ['suspend-all', 'resume-all'])
        expectEnvelope(await organisation.ask('POST', `/owner/agents/${verb}`, {}, by), 403, 'forbidden');
    }
  });
});
