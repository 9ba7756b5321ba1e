/** `first_time` in conditions: a call of a kind that the agent never made is held; after it was approved and sent, the next one passes. */
import type { KyselyPlugin } from 'kysely';
import { describe, expect, test } from 'vitest';
import type { Outcome } from '../../broker/audit/outcome.ts';
import { agentSeenValues } from '../../broker/calls/seen-values.ts';
import type { Log } from '../../broker/log/log.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { givenReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const SCOPES = {
  'codehost:read': ['GET /repos/*/*/issues', 'GET /repos/*/*/issues/*'],
  'codehost:write': ['POST /repos/*/*/issues', 'PATCH /repos/*/*/issues/*', 'POST /mail'],
};
const ALL = Object.keys(SCOPES);
const held = (kind: string) => [
  { effect: 'allow' },
  { name: 'new', effect: 'require_approval', when: `first_time.${kind}` },
];

describe.each(STORES)(`first_time, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(async () => {
    const made = await world.organisation();
    await made.platform({ id: 'codehost', manifest: { scopes: SCOPES, recipients: { 'POST /mail': ['/to'] } } });
    return made;
  });
  const agentBy = async (rules: readonly unknown[]) =>
    organisation.agent({ policy: await organisation.policy(rules), grants: { codehost: { scopeList: ALL } } });
  const send = (agent: TestAgent, line: string, data?: object) => {
    const [method, endpoint] = line.split(' ');
    const scope = method === 'GET' ? 'codehost:read' : 'codehost:write';
    return agent.act({ platform: 'codehost', scope, method, endpoint, ...(data && { data }) });
  };
  const expectSent = async (...call: Parameters<typeof send>) => expect((await send(...call)).status).toBe(200);
  const expectHeld = async (...call: Parameters<typeof send>): Promise<string> => {
    const answer = await expectStatus(202, send(...call));
    return answer.body.approval_id;
  };
  const approve = async (id: string) => {
    await expectStatus(200, organisation.approve(id));
    await expect
      .poll(async () => (await organisation.ask('GET', `/owner/approvals/${id}`)).body.executed_at)
      .toBeTruthy();
  };

  test('a new operation is held until one was approved and sent', async () => {
    const agent = await agentBy(held('operation'));
    const id = await expectHeld(agent, 'POST /repos/acme/app/issues', { title: 'a' });
    // Nothing was sent: it still is the first time.
    await expectHeld(agent, 'POST /repos/acme/app/issues', { title: 'b' });
    await approve(id);
    await expectSent(agent, 'POST /repos/acme/other/issues', { title: 'c' });
    await expectHeld(agent, 'PATCH /repos/acme/app/issues/1', { title: 'd' });
    // Another agent has not done it.
    await expectHeld(await agentBy(held('operation')), 'POST /repos/acme/app/issues', { title: 'a' });
  });

  test('a call with more recipients than are stored is always held, and thousands of recipients do not delay other calls', async () => {
    const people = (count: number) => ({ to: Array.from({ length: count }, (_, i) => `p${i}@many.example`).join(',') });
    const careful = await agentBy(held('recipient'));
    await approve(await expectHeld(careful, 'POST /mail', people(101)));
    await expectHeld(careful, 'POST /mail', people(101));
    await approve(await expectHeld(careful, 'POST /mail', people(100)));
    await expectSent(careful, 'POST /mail', people(100));
    const free = await agentBy([{ effect: 'allow' }]);
    await expectSent(free, 'POST /mail', people(30_000));
    await expectSent(careful, 'POST /mail', people(1));
    expect(world.running.services.recorder.backlog().late).toBe(0);
  });

  test('reading a repository does not make the first change there a known one', async () => {
    const agent = await agentBy(held('repository && request.method != "GET"'));
    await expectSent(agent, 'GET /repos/acme/app/issues');
    await approve(await expectHeld(agent, 'POST /repos/acme/app/issues', { title: 'a' }));
    await expectSent(agent, 'PATCH /repos/ACME/App/issues/1', { title: 'b' });
    await expectHeld(agent, 'POST /repos/acme/other/issues', { title: 'c' });
  });

  test('a known recipient passes in any spelling; with two recipients both must be known', async () => {
    const agent = await agentBy(held('recipient'));
    await expectSent(agent, 'GET /repos/acme/app/issues');
    await approve(await expectHeld(agent, 'POST /mail', { to: 'ann@x.example' }));
    await expectSent(agent, 'POST /mail', { to: 'Ann <ann@X.example>' });
    await expectHeld(agent, 'POST /mail', { to: 'ann@x.example, bob@x.example' });
    await expectHeld(agent, 'POST /mail', {});
  });

  test('seen values before the rule existed count, and so do seen values of a parent', async () => {
    const agent = await agentBy([{ effect: 'allow' }]);
    await expectSent(agent, 'POST /repos/acme/app/issues', { title: 'a' });
    const guarded = await organisation.ask('POST', '/owner/guardrails', {
      guardrails: [{ name: 'new operations wait', effect: 'require_approval', when: 'first_time.operation' }],
    });
    expect(guarded.status, guarded.text).toBe(200);
    await expectSent(agent, 'POST /repos/acme/app/issues', { title: 'b' });
    await expectHeld(agent, 'PATCH /repos/acme/app/issues/1', { title: 'c' });
    const child = await childOf(world, organisation, agent, { grants: [{ platform: 'codehost', scopes: ALL }] });
    await expectSent(child, 'POST /repos/acme/app/issues', { title: 'd' });
    await expectHeld(child, 'PATCH /repos/acme/app/issues/1', { title: 'e' });
    await organisation.ask('POST', '/owner/guardrails', { guardrails: [] });
  });

  test('a refused call does not count, and the simulation gives the same result as a call', async () => {
    const agent = await agentBy([...held('repository'), { effect: 'deny', when: 'request.method == "PATCH"' }]);
    expect(await send(agent, 'PATCH /repos/acme/app/issues/1', { title: 'a' })).toMatchObject({
      status: 403,
      body: { reason: 'denied_by_policy' },
    });
    const call = { platform: 'codehost', scope: 'codehost:read', method: 'GET', endpoint: '/repos/acme/app/issues' };
    const simulate = async () => {
      const { body, text } = await organisation.ask('POST', '/owner/simulate', { agent_id: agent.agentId, call });
      return body.decision ?? text;
    };
    const before = await simulate();
    await approve(await expectHeld(agent, 'GET /repos/acme/app/issues'));
    expect(await simulate()).not.toEqual(before);
    await expectSent(agent, 'GET /repos/acme/app/issues');
  });

  test('only hashes of seen values are stored, no content', async () => {
    const agent = await agentBy(held('recipient'));
    await approve(await expectHeld(agent, 'POST /mail', { to: 'carol@secret.example' }));
    const rows = await world.db.selectFrom('agent_deeds').selectAll().execute();
    expect(rows.length).toBeGreaterThan(1);
    expect(JSON.stringify(rows)).not.toMatch(/carol|mail|issues/);
  });

  test('seen values that no rule asked about are stored in batches; a row that the store refuses does not fail the others', async () => {
    const { store: real } = world.running.broker;
    const statements: number[] = [];
    const counting: KyselyPlugin = {
      transformQuery: ({ node }) => {
        if (node.kind === 'InsertQueryNode') statements.push(statements.length);
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const refused: unknown[] = [];
    let isAway = true;
    const seenValues = agentSeenValues({
      clock: Date.now,
      log: { error: (entry: unknown) => refused.push(entry) } as unknown as Log,
      store: {
        ...real,
        get db() {
          if (isAway) throw new Error('connection refused');
          return real.db.withPlugin(counting);
        },
      },
    });
    const agents = await Promise.all(Array.from({ length: 20 }, () => agentBy([{ effect: 'allow' }])));
    const { organisation_id: organisationId } = await real.db
      .selectFrom('agents')
      .select('organisation_id')
      .where('id', '=', agents[0]?.id ?? '')
      .executeTakeFirstOrThrow();
    const outcome = { kind: 'answered', call: { organisationId } } as Outcome;
    const does = (agentId: string) =>
      seenValues.toRemember(outcome, agentId, () => ({
        isChange: true,
        known: [{ kind: 'operation', value: 'p POST /x' }],
        unknown: [],
      }));
    for (const { id } of agents) does(id)?.writeSoon();
    expect(does(agents[0]?.id ?? '')).toBeUndefined();
    await expect(seenValues.write()).rejects.toThrow('connection refused');
    isAway = false;
    await seenValues.write();
    expect(statements).toHaveLength(1);
    const stored = async () => {
      const ids = agents.map(({ id }) => id);
      const rows = await real.db.selectFrom('agent_deeds').select('changed').where('agent_id', 'in', ids).execute();
      return rows.map(({ changed }) => changed);
    };
    expect(await stored()).toEqual(agents.map(() => 1));

    await real.db.deleteFrom('agent_deeds').where('organisation_id', '=', organisationId).execute();
    const again = agentSeenValues({
      clock: Date.now,
      log: { error: (e: unknown) => refused.push(e) } as never,
      store: real,
    });
    for (const id of ['gone', ...agents.map(({ id }) => id)])
      again
        .toRemember(outcome, id, () => ({
          isChange: true,
          known: [{ kind: 'operation', value: 'p POST /x' }],
          unknown: [],
        }))
        ?.writeSoon();
    await expect.poll(stored).toEqual(agents.map(() => 1));
    expect(refused).toHaveLength(1);
  });

  if (store === 'postgres') {
    const replica = givenReplica(world);
    test('another replica uses a new seen value immediately', async () => {
      const agent = await agentBy(held('operation'));
      await expectHeld(replica.asks(agent), 'POST /repos/acme/app/issues', { title: 'a' });
      await approve(await expectHeld(agent, 'POST /repos/acme/app/issues', { title: 'a' }));
      await expectSent(replica.asks(agent), 'POST /repos/acme/app/issues', { title: 'b' });
    });
  }
});
