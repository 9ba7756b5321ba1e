/** Pending items of an agent end with the agent, whoever ends it and however. */
import { describe, expect, test } from 'vitest';
import { mintBootstrapToken } from '../../broker/auth/bootstrap-token.ts';
import { findLiveAuthorisation, putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld } from '../world/world.ts';

const POST = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } };
const READ_ONLY = [{ platform: 'demo', scopes: ['demo:read'] }];

describe.each(STORES)(`ended agents on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const clock = () => world.running.broker.clock();
  const newAgent = (agent = {}) => organisation.agent({ name: `a-${Math.random()}`, agent });
  const hold = async (agent: TestAgent): Promise<Answer['body']> => {
    const answer = await expectStatus(202, agent.act(POST));
    return answer.body;
  };
  const askForAccess = async (agent: TestAgent): Promise<Answer['body']> => {
    const asked = { platform: 'demo', scope: 'demo:write' };
    const answer = await expectStatus(202, agent.post('/v1/access-request', asked));
    return answer.body;
  };
  const waitingIds = async () => {
    const { body } = await organisation.ask('GET', '/owner/approvals?status=pending');
    return body.approvals.map((one: { approval_id: string }) => one.approval_id);
  };
  /** Expects: expired since `at`, removed from the inbox, and impossible to approve. */
  const expectEnded = async (approvalId: string, at: [from: number, to: number]) => {
    const { body } = await organisation.ask('GET', `/owner/approvals/${approvalId}`);
    expect(body.status).toBe('expired');
    expect(Date.parse(body.expires_at)).toBeGreaterThanOrEqual(at[0]);
    expect(Date.parse(body.expires_at)).toBeLessThanOrEqual(at[1]);
    expect(await waitingIds()).not.toContain(approvalId);
    const approve = () => organisation.approve(approvalId);
    expectEnvelope(await withoutCalls(world, approve), 410, 'approval_expired');
  };

  const revoke = (agent: TestAgent) => organisation.ask('POST', `/owner/agents/${agent.id}/revoke`, {});
  const applyWithout = () => organisation.ask('POST', '/owner/governance/apply', { text: 'agents: {}', values: {} });

  test.each<[string, Partial<{ origin: 'governance' }>, (agent: TestAgent) => Promise<Answer>]>([
    ['an owner revokes', {}, revoke],
    ['a governance file removes', { origin: 'governance' }, applyWithout],
  ])('an agent that %s: its pending calls, and its children’s, end with it', async (_who, row, end) => {
    const agent = await newAgent(row);
    const bystander = await newAgent();
    const child = await childOf(world, organisation, agent);
    const reader = await childOf(world, organisation, agent, { grants: READ_ONLY });
    const [own, ofChild, stays] = [await hold(agent), await hold(child), await hold(bystander)];
    const access = await askForAccess(reader);
    const before = clock();
    const waiting = agent.get(`/v1/approvals/${own.approval_id}?wait=30`);
    await expectStatus(200, end(agent));
    expect((await waiting).body.status).toBe('expired');
    for (const id of [own.approval_id, ofChild.approval_id]) await expectEnded(id, [before, clock()]);
    expect((await reader.get(access.poll_url)).body.status).toBe('expired');
    expect(await waitingIds()).toEqual([stays.approval_id]);
  });

  test.each<[string, Partial<{ origin: 'governance' }>, (agent: TestAgent) => Promise<Answer>]>([
    ['an owner revokes', {}, revoke],
    ['a governance file removes', { origin: 'governance' }, applyWithout],
  ])('an agent that %s: its bootstrap token and its MCP client’s access end with it', async (_who, row, end) => {
    const agent = await newAgent(row);
    const { broker } = world.running;
    const bootstrap = await mintBootstrapToken(world.db, { organisation_id: organisation.id, id: agent.id }, clock(), {
      madeBy: null,
    });
    const authorisation = crypto.randomUUID();
    await putMcpAuthorisation(world.db, {
      organisation_id: organisation.id,
      id: authorisation,
      agent_id: agent.id,
      owner_id: organisation.owner.id,
      client_id: 'client',
      client_name: 'client',
      redirect_host: 'client.example',
      scope: 'mcp:read',
      created_at: clock(),
      expires_at: clock() + 86_400_000,
    });
    expect(await findLiveAuthorisation(broker.store.db, authorisation, clock())).toBeDefined();
    await expectStatus(200, end(agent));
    expect(await findLiveAuthorisation(broker.store.db, authorisation, clock())).toBeUndefined();
    const { ended_at } = await world.db
      .selectFrom('mcp_authorisations')
      .select('ended_at')
      .where('id', '=', authorisation)
      .executeTakeFirstOrThrow();
    expect(ended_at, 'on file, and not by the status of the agent alone').not.toBeNull();
    const token = await world.db
      .selectFrom('one_time_tokens')
      .select('used_at')
      .where('subject', '=', agent.id)
      .executeTakeFirstOrThrow();
    expect(token.used_at, `${bootstrap.expiresAt}`).not.toBeNull();
  });

  test('calls of a suspended agent stay pending', async () => {
    const agent = await newAgent();
    const { approval_id } = await hold(agent);
    expect((await organisation.ask('POST', `/owner/agents/${agent.id}/suspend`, {})).status).toBe(200);
    expect(await waitingIds()).toEqual([approval_id]);
  });

  test.each([
    ['its agent', /agent/],
    ['the parent of its agent', /the parent agent is no longer active/],
  ])('a call that is being held while %s is revoked is refused, and is not left pending', async (which, detail) => {
    const agent = await newAgent();
    const caller = which === 'its agent' ? agent : await childOf(world, organisation, agent);
    const end = (tx = world.db) =>
      tx
        .updateTable('agents')
        .set({ status: 'revoked', status_cause: 'owner_manual' })
        .where('id', '=', agent.id)
        .execute();
    if (store === 'sqlite') {
      // SQLite has no lock to wait for: the agent ends between loading the facts and holding the call.
      const { services } = world.running;
      const { loadFacts } = services;
      services.loadFacts = async (...asked) => {
        services.loadFacts = loadFacts;
        const loaded = await loadFacts(...asked);
        await end();
        return loaded;
      };
    }
    const answer = await withLockContention(world, end, () => caller.act(POST), { waiters: 1 });
    expect([answer.status, answer.body.reason], answer.text).toEqual([403, 'agent_revoked']);
    expect(answer.body.detail).toMatch(detail);
    expect(await waitingIds()).toEqual([]);
  });

  describe('an expired child', () => {
    const TTL_MS = 60_000;
    test.each([
      ['also when it never calls again', false],
      ['when it calls again', true],
    ])('its pending calls expire with it, %s', async (_when, callsAgain) => {
      const parent = await newAgent();
      const child = await childOf(world, organisation, parent, { ttl_seconds: TTL_MS / 1000 });
      const reader = await childOf(world, organisation, parent, { ttl_seconds: TTL_MS / 1000, grants: READ_ONLY });
      const held = await hold(child);
      const access = await askForAccess(reader);
      const end = Date.parse((await child.get('/v1/agents/me')).body.expires_at);
      expect(Date.parse(held.expires_at)).toBe(end);
      expect(await waitingIds()).toEqual([held.approval_id]);
      world.clock.skewMs = TTL_MS + 2_000;
      if (callsAgain)
        for (const one of [child, reader])
          expect(await one.act(POST)).toMatchObject({ status: 403, body: { reason: 'agent_revoked' } });
      await expectEnded(held.approval_id, [end, end]);
      expect((await child.get(`/v1/approvals/${held.approval_id}`)).body).toMatchObject({
        status: 'expired',
        expires_at: new Date(end).toISOString(),
      });
      expect((await reader.get(access.poll_url)).body.status).toBe('expired');
      expect((await organisation.ask('GET', '/owner/access-requests?status=pending')).body.access_requests).toEqual([]);
    });

    test('its calls do not stay pending longer than its parent lives', async () => {
      const parent = await newAgent({ expires_at: clock() + TTL_MS });
      const child = await childOf(world, organisation, parent, { ttl_seconds: 3600 });
      const held = await hold(child);
      expect(Date.parse(held.expires_at)).toBeLessThanOrEqual(clock() + TTL_MS);
      const own = await hold(parent);
      expect(Date.parse(own.expires_at)).toBeLessThanOrEqual(clock() + TTL_MS);
    });
  });
});
