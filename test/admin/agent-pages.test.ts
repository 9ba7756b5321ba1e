/** Lists of agents for owners: pages, orders, recent activity, and single agents. */
import { beforeAll, describe, expect, test } from 'vitest';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import { expectStatus } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

type Listed = { name: string; agent_id: string; status: string; activity?: Record<string, unknown> };

describe.each(STORES)(`lists of agents on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const busy = shared(() => organisation.agent({ name: 'Busy' }));
  const quiet = shared(() => organisation.agent({ name: 'quiet 100%' }));

  const list = async (query: string) => {
    const answer = await expectStatus(200, organisation.ask('GET', `/owner/agents?${query}`));
    return answer.body as { agents: Listed[]; next: string | null; total: number };
  };
  const namesOf = async (query: string) => (await list(query)).agents.map(({ name }) => name);

  beforeAll(async () => {
    const careful = await organisation.policy([{ effect: 'deny' }], 'very careful');
    await organisation.agent({ name: 'zeta', policy: careful });
    await organisation.agent({ name: 'alpha', agent: { status: 'revoked', status_cause: 'owner_manual' } });
    await organisation.agent({ name: 'gone', agent: { status: 'deleted' } });
    world.clock.skewMs = -2 * DAY_MS;
    await busy.act(READ);
    await quiet.act(READ);
    world.clock.skewMs = 0;
    await busy.act(READ);
    await busy.act({ ...READ, scope: 'demo:nonsense' });
    expect((await busy.act(WRITE)).status).toBe(202);
  });

  test('without a parameter the answer has its former shape, with all agents', async () => {
    const { body } = await organisation.ask('GET', '/owner/agents');
    expect(Object.keys(body)).toEqual(expect.arrayContaining(['agents']));
    expect(body.next).toBeUndefined();
    expect(body.agents[0].activity).toBeUndefined();
    expect(body.agents).toHaveLength(4);
  });

  test('pages have no gaps or duplicates, in every order and direction', async () => {
    for (const sort of ['name', 'owner', 'policy', 'status', 'created', 'last_call'].flatMap((one) => [
      one,
      `-${one}`,
    ])) {
      const seen: string[] = [];
      let cursor: string | null = '';
      for (let pages = 0; cursor !== null && pages < 5; pages++) {
        const page = await list(`sort=${sort}&limit=1${cursor && `&cursor=${cursor}`}`);
        expect(page.total).toBe(4);
        seen.push(...page.agents.map(({ name }) => name));
        cursor = page.next;
      }
      expect([sort, [...seen].sort()]).toEqual([sort, ['Busy', 'alpha', 'quiet 100%', 'zeta']]);
      expect(seen).toEqual(await namesOf(`sort=${sort}`));
    }
    expect(await namesOf('sort=name')).toEqual(['Busy', 'quiet 100%', 'zeta', 'alpha']);
    expect((await namesOf('sort=-last_call')).slice(0, 2)).toEqual(['Busy', 'quiet 100%']);
  });

  test('words are searched in name, id, owner and policy; % and _ are literal; filters are combined', async () => {
    expect(await namesOf('q=BUS')).toEqual(['Busy']);
    expect(await namesOf(`q=${quiet.agentId}`)).toEqual(['quiet 100%']);
    expect(await namesOf('q=careful+zet')).toEqual(['zeta']);
    expect(await namesOf(`q=${encodeURIComponent('0%')}`)).toEqual(['quiet 100%']);
    expect(await namesOf('q=_')).toEqual(
      (await list('q=_')).agents.filter((one) => one.agent_id.includes('_')).map((one) => one.name),
    );
    expect(await namesOf('q=a_t_')).toEqual([]);
    expect(await namesOf(`q=${encodeURIComponent(organisation.owner.email)}`)).toHaveLength(4);
    expect(await namesOf('status=revoked')).toEqual(['alpha']);
    expect(await namesOf('status=revoked&q=busy')).toEqual([]);
    expect(await namesOf(`owner=${organisation.owner.id}&limit=2`)).toHaveLength(2);
  });

  test('each agent has its last call, the counts of the last day, and the number of pending items', async () => {
    const { agents } = await list('q=busy');
    expect(agents[0]?.activity).toMatchObject({ calls: 3, refused: 1, held: 1, waiting_calls: 1, waiting_requests: 0 });
    const [idle] = (await list('q=quiet')).agents;
    expect(idle?.activity).toMatchObject({ calls: 0, refused: 0, held: 0 });
    expect(Date.now() - Date.parse(idle?.activity?.last_call_at as string)).toBeGreaterThan(DAY_MS);
    expect((await list('q=zeta')).agents[0]?.activity?.last_call_at).toBeNull();
  });

  test('a call that was held and then made, or refused after its approval, counts once, as in the statistics', async () => {
    const agent = await organisation.agent({ name: 'approved' });
    const approve = async () => {
      const id = await agent.hold(WRITE);
      const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
      return async () => {
        await expectStatus(200, organisation.approve(id, { request_hash }));
      };
    };
    const [made, refused] = [await approve(), await approve()];
    await made();
    await organisation.ask('DELETE', `/owner/agents/${agent.agentId}/grants/demo`);
    await refused();
    expect((await agent.act(READ)).status).toBe(403);
    const rows = (await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}&kind=action`)).body.rows;
    expect(rows.map(({ result }: { result: string }) => result).sort()).toEqual(
      ['allowed', 'denied', 'denied', 'held', 'held'].sort(),
    );
    const [one] = (await list('q=approved')).agents;
    expect(one?.activity).toMatchObject({ calls: 3, refused: 1, held: 2 });
    const { agents } = (await organisation.ask('GET', '/owner/stats?range=day')).body;
    expect(agents.find(({ agent_id }: { agent_id: string }) => agent_id === agent.agentId)).toMatchObject({
      calls: 3,
      refused: 1,
      held: 2,
    });
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/delete`, {});
  });

  test('an agent is read by either id, with owner, policy and the age of its key; its children by their parent', async () => {
    const parent = await organisation.agent({ name: 'planner' });
    const child = await childOf(world, organisation, parent, { name: 'reader' });
    for (const id of [parent.agentId, parent.id])
      expect((await organisation.ask('GET', `/owner/agents/${id}`)).body).toMatchObject({
        agent_id: parent.agentId,
        owner_email: organisation.owner.email,
        policy_name: expect.any(String),
        key_since: expect.any(String),
        activity: { calls: expect.any(Number) },
      });
    const { agents, total } = await list(`parent=${parent.agentId}`);
    expect([agents.map(({ agent_id }) => agent_id), total]).toEqual([[child.agentId], 1]);
  });

  test('nothing of another organisation is listed; invalid parameters are refused', async () => {
    const other = await world.demoOrganisation();
    expectEnvelope(await other.ask('GET', `/owner/agents/${busy.agentId}`), 404, 'not_found');
    expectEnvelope(await other.ask('GET', `/owner/agents?parent=${busy.agentId}`), 404, 'not_found');
    expectEnvelope(await other.ask('GET', '/owner/agents/agt_none'), 404, 'not_found');
    expect((await other.ask('GET', '/owner/agents?q=busy')).body).toEqual({ agents: [], next: null, total: 0 });
    const { next } = await list('limit=1');
    for (const query of [
      'status=deleted',
      'sort=calls',
      'limit=0',
      'cursor=e30',
      `sort=created&cursor=${next}`,
      'q=a+b+c+d+e+f+g+h+i',
    ])
      expectEnvelope(await organisation.ask('GET', `/owner/agents?${query}`), 400, 'invalid_request');
  });
});

describe.each(ONE_STORE)(`very many agents on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);

  test('are counted up to 10,000, listed by name or age, and in other orders only after filtering', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent({ name: 'first' });
    const row = await world.db.selectFrom('agents').selectAll().where('id', '=', agent.id).executeTakeFirstOrThrow();
    for (let at = 1; at < 10_000; at += 1_000) {
      const copies = Array.from({ length: Math.min(1_000, 10_000 - at) }, (_, more) => {
        const status: 'active' | 'suspended' = at + more < 50 ? 'suspended' : 'active';
        return { ...row, id: uuidv4(), agent_id: newAgentId(), name: `copy ${at + more}`, status };
      });
      await world.db.insertInto('agents').values(copies).execute();
    }
    const list = (query: string) => organisation.ask('GET', `/owner/agents?limit=2&${query}`);
    for (const sort of ['name', '-name', 'created', '-created'])
      expect((await list(`sort=${sort}`)).body).toMatchObject({ total: 10_000, next: expect.any(String) });
    const refused = await list('sort=-last_call');
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.body.detail).toContain('10000 agents or more can be ordered by name or created only');
    expect((await list('sort=-last_call&status=suspended')).body).toMatchObject({ total: 49 });
  });
});
