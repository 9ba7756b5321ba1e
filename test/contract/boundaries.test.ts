/** Everything that expires has expired at exactly its `expires_at`, on every entry point, and time limits hold to the millisecond. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { expectStatus, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

const JSON_BODY = { 'content-type': 'application/json' };

describe.each(ONE_STORE)(`expiry to the millisecond, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(async () => {
    const made = await world.demoOrganisation();
    await made.ask('POST', '/owner/organisation', { publish_identity_documents: true });
    return made;
  });
  // A stopped clock, so that a request can be made at an exact time.
  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Math.ceil(Date.now() / 1000) * 1000 + 123 }));
  afterEach(() => void vi.useRealTimers());

  /** Returns what `look` returns one millisecond before `end`, and at `end`. */
  async function around(end: number, look: () => Promise<unknown>): Promise<[before: unknown, at: unknown]> {
    vi.setSystemTime(end - 1);
    const before = await look();
    vi.setSystemTime(end);
    return [before, await look()];
  }
  const post = async (path: string, body: unknown) => (await send(world.running.baseUrl + path, jsonPost(body))).body;
  const trqp = (agent: TestAgent, which: 'authorization' | 'recognition', context = {}) =>
    post(`/v1/trqp/${which}`, {
      entity_id: agent.agentId,
      authority_id: `did:web:${new URL(world.running.baseUrl).host.replace(':', '%3A')}`,
      action: 'demo:read',
      resource: 'demo',
      context,
    });
  const lists = async (agent: TestAgent) => {
    const { pending, recently_completed } = (await agent.get('/v1/agents/me/pending-actions')).body;
    return [pending.length, recently_completed.length];
  };

  test('a held call expires, in the approval and in both lists, and nobody can approve it', async () => {
    const agent = await organisation.agent();
    const { approval_id: id, expires_at } = (await agent.act(WRITE)).body;
    const seen = await around(Date.parse(expires_at), async () => [
      (await agent.get(`/v1/approvals/${id}`)).body.status,
      ...(await lists(agent)),
    ]);
    expect(seen).toEqual([
      ['pending', 1, 0],
      ['expired', 0, 1],
    ]);
    const late = await organisation.approve(id);
    expect([late.status, late.body.error], late.text).toEqual([410, 'approval_expired']);
  });

  test('decided and expired calls are listed for 24 hours', async () => {
    const agent = await organisation.agent();
    const denied = await agent.hold(WRITE);
    await agent.act(WRITE);
    const { decided_at } = (await organisation.deny(denied)).body;
    const shown = await around(Date.parse(decided_at) + DAY_MS, async () => {
      const { body } = await agent.get('/v1/agents/me/pending-actions');
      return body.recently_completed.map(({ status }: { status: string }) => status);
    });
    expect(shown).toEqual([['denied'], ['expired']]);
    const end = Date.parse(decided_at) + 2 * DAY_MS;
    expect(await around(end, () => lists(agent))).toEqual([
      [0, 1],
      [0, 0],
    ]);
  });

  test('an access request and a registration expire', async () => {
    const agent = await organisation.agent({ grants: { demo: { scopeList: ['demo:read'] } } });
    const body = JSON.stringify({ platform: 'demo', scope: 'demo:delete' });
    const asked = await expectStatus(202, agent.request('POST', '/v1/access-request', { headers: JSON_BODY, body }));
    const { owner } = organisation;
    const registered = await post('/v1/register', { owner_id: owner.id, agent_name: 'late', requested_scopes: [] });
    const statuses = () =>
      Promise.all([agent.get(asked.body.poll_url), send(world.running.baseUrl + registered.poll_url, {})]).then(
        (answers) => answers.map((answer) => answer.body.status),
      );
    expect(await around(Date.now() + DAY_MS, statuses)).toEqual([
      ['pending', 'pending'],
      ['expired', 'expired'],
    ]);
  });

  test('a grant ends for calls, queries and permissions', async () => {
    const end = Date.now() + 60_000;
    const agent = await organisation.agent({ grants: { demo: { expires_at: end } } });
    const seen = await around(end, async () => {
      const act = await agent.act(READ);
      const { authorized } = await trqp(agent, 'authorization');
      const { platforms } = (await agent.get('/v1/agent/permissions')).body.data;
      return [act.status, act.body.reason, authorized, platforms[0]?.expiresInSeconds];
    });
    expect(seen).toEqual([
      [200, undefined, true, 0],
      [403, 'grant_expired', false, undefined],
    ]);
  });

  test.each(['agent', 'child'] as const)('a lifetime ends through every entry point: %s', async (kind) => {
    const parent = await organisation.agent({ agent: { expires_at: Date.now() + 60_000 } });
    const agent = kind === 'agent' ? parent : await childOf(world, organisation, parent, { ttl_seconds: 10 });
    const { expires_at } = (await agent.get('/v1/agents/me')).body;
    const seen = await around(Date.parse(expires_at), async () => {
      const { halt } = (await agent.get('/v1/agents/me')).body;
      const act = await agent.act(READ);
      const { recognized, message } = await trqp(agent, 'recognition');
      const did = await send(`${world.running.baseUrl}/agents/${agent.agentId}/did.json`, {});
      return [halt?.since, act.status, recognized || message, did.status];
    });
    expect(seen).toEqual([
      [undefined, 200, true, 200],
      [expires_at, 403, 'expired', 410],
    ]);
  });

  test.each([
    [60_000, undefined],
    [60_001, true],
  ])('context.time of TRQP that is %i ms away, earlier or later: ignored: %s', async (ms, ignored) => {
    const agent = await organisation.agent();
    for (const which of ['authorization', 'recognition'] as const)
      for (const skew of [ms, -ms]) {
        const time = new Date(Date.now() + skew).toISOString();
        const { time_requested, context } = await trqp(agent, which, { time });
        expect([time_requested, context?.time_requested_ignored]).toEqual([time, ignored]);
      }
  });
});
