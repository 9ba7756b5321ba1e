/** Owners and labels of agents: handing over, searching, conditions, and governance files. */
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, fresh, givenWorld, READ } from '../world/world.ts';

describe.each(STORES)(`handing agents over on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());

  const handOver = (body: Record<string, unknown>, by = organisation.owner) =>
    organisation.ask('POST', '/owner/hand-over', body, by);
  const ownersOf = async () =>
    Object.fromEntries(
      (await organisation.ask('GET', '/owner/agents')).body.agents.map(
        ({ name, owner_id }: { name: string; owner_id: string }) => [name, owner_id],
      ),
    );
  const events = async (reason: string) =>
    (await organisation.ask('GET', `/owner/audit?kind=event&reason=${reason}`)).body.rows;

  test('all agents or some, with children and pending calls; their tokens stay valid', async () => {
    const [ann, bob] = [organisation.owner, await organisation.addOwner('approver')];
    const one = await organisation.agent({ name: 'one' });
    const two = await organisation.agent({ name: 'two' });
    await organisation.agent({ name: 'over', agent: { status: 'revoked' } });
    const child = await childOf(world, organisation, one);
    const some = await handOver({ from: ann.id, to: bob.id, agents: [one.agentId] });
    expect([some.status, some.body]).toEqual([200, { handed_over: 1, in_governance_file: 0 }]);
    expect(await ownersOf()).toMatchObject({ one: bob.id, two: ann.id, over: ann.id });
    const [row] = await events('agents_handed_over');
    expect(row).toMatchObject({ agent_id: one.id, detail: `${ann.email} → ${bob.email}` });
    expect(row.flags.change).toMatchObject({ from: ann.id, to: bob.id, count: 1, agents: [one.agentId] });
    // Its token names the former owner; a token that names the new one is valid, too, and one that names neither is not.
    expect(one.ownerId).toBe(ann.id);
    expect((await one.act(READ)).status).toBe(200);
    expect((await child.act(READ)).status).toBe(200);
    expect((await one.get('/v1/agents/me')).body).toMatchObject({ owner_id: bob.id });
    expect((await child.get('/v1/agents/me')).body).toMatchObject({ owner_id: bob.id });
    const named = (ownerId: string) => new TestAgent({ ...one, ownerId });
    expect((await named(bob.id).act(READ)).status).toBe(200);
    const carl = await organisation.addOwner('viewer');
    expect((await named(carl.id).act(READ)).status).toBe(401);
    expect((await handOver({ from: ann.id, to: bob.id })).body.handed_over).toBe(1);
    expect(await ownersOf()).toMatchObject({ one: bob.id, two: bob.id, over: ann.id });
    // Handed on and back: any of the owners it had may be named.
    await handOver({ from: bob.id, to: carl.id });
    await handOver({ from: carl.id, to: ann.id });
    for (const { id } of [ann, bob, carl]) expect((await named(id).act(READ)).status).toBe(200);
    expect((await two.act(READ)).status).toBe(200);
    expect(await events('agents_handed_over')).toHaveLength(4);
  });

  test('the answer counts the agents that a governance file manages', async () => {
    const bob = await organisation.addOwner('admin');
    await organisation.agent({ name: 'filed' });
    const { text } = (await organisation.ask('GET', '/owner/governance')).body;
    expect((await organisation.ask('POST', '/owner/governance/apply', { text })).status).toBe(200);
    await organisation.agent({ name: 'made since' });
    const given = await handOver({ from: organisation.owner.id, to: bob.id });
    expect([given.status, given.body], given.text).toEqual([200, { handed_over: 2, in_governance_file: 1 }]);
  });

  test('all or nothing, by admins only, and between owners of the organisation', async () => {
    const bob = await organisation.addOwner('approver');
    const stranger = await world.organisation();
    const mine = await organisation.agent({ name: 'mine' });
    const theirs = await organisation.agent({ name: 'theirs', agent: { owner_id: bob.id } });
    const between = { from: organisation.owner.id, to: bob.id };
    expectEnvelope(await handOver(between, bob), 403, 'forbidden');
    expectEnvelope(await handOver({ ...between, to: stranger.owner.id }), 404, 'not_found');
    expectEnvelope(await handOver({ ...between, to: between.from }), 400, 'invalid_request');
    expectEnvelope(await handOver({ ...between, agents: [] }), 400, 'invalid_request');
    expectEnvelope(await handOver({ ...between, agents: [mine.agentId, theirs.agentId] }), 409, 'conflict');
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await handOver(between), 503, 'audit_unavailable');
    });
    expect(await ownersOf()).toMatchObject({ mine: organisation.owner.id, theirs: bob.id });
    expect((await handOver(between)).status).toBe(200);
    expectEnvelope(await handOver(between), 409, 'conflict');
    // An owner without agents can then be removed.
    await handOver({ from: bob.id, to: organisation.owner.id });
    expect((await organisation.ask('DELETE', `/owner/owners/${bob.id}`)).status).toBe(200);
    expect((await mine.act(READ)).status).toBe(200);
  });

  describe('labels', () => {
    const label = (id: string, labels: unknown, by = organisation.owner) =>
      organisation.ask('POST', `/owner/agents/${id}/labels`, { labels }, by);
    const found = async (query: string) =>
      (await organisation.ask('GET', `/owner/agents?${query}`)).body.agents.map(({ name }: { name: string }) => name);

    test('are normalised, searchable, counted, and recorded', async () => {
      const agent = await organisation.agent({ name: 'one' });
      const other = await organisation.agent({ name: 'two' });
      const answer = await label(agent.agentId, [' Prod', 'team_a', 'prod']);
      expect([answer.status, answer.body.labels]).toEqual([200, ['prod', 'team_a']]);
      await label(other.agentId, ['teamxa', 'prod']);
      const [newest, row] = await events('agent_labelled');
      expect(newest).toMatchObject({ agent_id: other.id });
      expect(row.flags.change).toMatchObject({ labels: ['prod', 'team_a'], before: [] });
      expect(await found('label=PROD')).toEqual(['one', 'two']);
      expect(await found('label=team_a')).toEqual(['one']);
      expect(await found('label=team')).toEqual([]);
      expect(await found('q=team_a')).toEqual(['one']);
      const { labels } = (await organisation.ask('GET', '/owner/agent-labels')).body;
      expect(labels).toEqual([
        { label: 'prod', agents: 2 },
        { label: 'team_a', agents: 1 },
        { label: 'teamxa', agents: 1 },
      ]);
      // Setting the same labels again is no change.
      await label(agent.agentId, ['team_a', 'PROD']);
      expect(await events('agent_labelled')).toHaveLength(2);
      for (const wrong of [
        [''],
        ['a'.repeat(41)],
        ['<b>'],
        ['a\u202Eb'],
        ['a"b'],
        ['%'],
        Array.from({ length: 11 }, (_, i) => `l${i}`),
        'prod',
        [1],
      ])
        expectEnvelope(await label(agent.agentId, wrong), 400, 'invalid_request');
      const child = await childOf(world, organisation, agent);
      expectEnvelope(await label(child.agentId, ['x']), 409, 'conflict');
      expectEnvelope(await label(agent.agentId, [], await organisation.addOwner('approver')), 403, 'forbidden');
      expect((await label(agent.agentId, [])).body.labels).toEqual([]);
    });

    test('are used by conditions at the next call; for a child the labels of its parent', async () => {
      const rules = [...ALLOW_ALL, { name: 'frozen', effect: 'deny' as const, when: "'frozen' in agent.labels" }];
      const agent = await organisation.agent({ rules });
      const child = await childOf(world, organisation, agent);
      expect((await agent.act(READ)).status).toBe(200);
      await label(agent.agentId, ['frozen']);
      for (const who of [agent, child]) {
        const denied = await who.act(READ);
        expect([denied.status, denied.body.reason]).toEqual([403, 'denied_by_policy']);
      }
      await label(agent.agentId, []);
      expect((await child.act(READ)).status).toBe(200);
    });

    test.each(["'Frozen Zone' in agent.labels", "agent.labels.exists(l, l.startsWith('FROZEN'))"])(
      'are matched by conditions case-insensitively: %s',
      async (when) => {
        const agent = await organisation.agent({ rules: [...ALLOW_ALL, { name: 'frozen', effect: 'deny', when }] });
        expect((await agent.act(READ)).status).toBe(200);
        await label(agent.agentId, ['Frozen Zone']);
        expect((await agent.act(READ)).body.reason).toBe('denied_by_policy');
      },
    );

    test('are part of governance files; a file without them leaves them unchanged', async () => {
      const apply = async (agents: object) => {
        const answer = await organisation.ask('POST', '/owner/governance/apply', { text: JSON.stringify({ agents }) });
        expect(answer.status, answer.text).toBe(200);
        return answer.body.changes;
      };
      const exported = async () =>
        parse((await organisation.ask('GET', '/owner/governance')).body.text).agents.filed.labels;
      const made = await apply({ filed: { labels: ['B', 'a'] } });
      expect(made.find(({ kind }: { kind: string }) => kind === 'agent').details).toContain('labels: a, b');
      expect(await exported()).toEqual(['a', 'b']);
      expect(await apply({ filed: { labels: ['b', 'A'] } })).toEqual([]);
      expect(await apply({ filed: {} })).toEqual([]);
      const [change] = await apply({ filed: { labels: ['c'] } });
      expect(change).toMatchObject({ kind: 'agent', action: 'update', details: ['labels: a, b → c'] });
      expect(await exported()).toEqual(['c']);
      await apply({ filed: { labels: [] } });
      expect(await exported()).toEqual([]);
    });
  });
});
