/** Access requests with two brokers on one PostgreSQL. */
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { type Answer, send, type TestAgent } from '../world/agent.ts';

import { keepNoticesDown } from '../world/notice-connections.ts';
import { givenReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { title: 'x' } };

describe.runIf(STORES.includes('postgres'))(`access requests and replicas on postgres${postgresNote}`, () => {
  let policy: string;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    policy = await organisation.policy([{ effect: 'allow' }]);
  });
  const second = givenReplica(world);
  beforeAll(() => expect(second.baseUrl).not.toBe(world.running.baseUrl));
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  const newAgents = async () => {
    const here = await organisation.agent({ policy, grants: { demo: { scopeList: ['demo:read'] } } });
    const there = second.asks(here);
    return { here, there };
  };
  const ask = (agent: TestAgent): Promise<Answer> =>
    agent.post('/v1/access-request', { platform: 'demo', scope: 'demo:write' });
  const idOf = async ({ body }: Answer): Promise<string> => {
    const query = world.db.selectFrom('access_requests').select('id').where('token', '=', body.request_token);
    return (await query.executeTakeFirstOrThrow()).id;
  };
  const approve = async (at: string, id: string): Promise<Answer> => {
    // A session is bound to one address.
    const { token } = mintOwnerSession({ ...world.running.broker, baseUrl: at }, organisation.owner);
    return await send(`${at}/owner/access-requests/${id}/approve`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
      },
      body: '{}',
    });
  };

  test('a decision at one replica reaches the agent that waits at the other, whose next call passes there', async () => {
    for (let round = 0; round < 3; round++) {
      const { there } = await newAgents();
      const asked = await ask(there);
      expect((await there.act(WRITE)).body.reason).toBe('scope_not_granted');
      const waiting = there.get(`${asked.body.poll_url}?wait=40`);
      await pause(300);
      expect((await approve(world.running.baseUrl, await idOf(asked))).status).toBe(200);
      expect((await waiting).body.status).toBe('approved');
      expect((await there.act(WRITE)).status).toBe(200);
    }
  });

  test('while no notices arrive, waiting requests poll the store', async () => {
    const { there } = await newAgents();
    const asked = await ask(there);
    const waiting = there.get(`${asked.body.poll_url}?wait=45`);
    await pause(300);
    const repair = keepNoticesDown(world);
    await pause(1_000);
    const began = performance.now();
    await approve(world.running.baseUrl, await idOf(asked));
    expect((await waiting).body.status).toBe('approved');
    expect(performance.now() - began).toBeLessThan(20_000);
    await repair();
  });

  test('50 concurrent requests at both replicas create one request; of 50 concurrent approvals one succeeds', async () => {
    const { here, there } = await newAgents();
    const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(i % 2 ? here : there)));
    expect(answers.map(({ status }) => status).sort((a, b) => a - b)).toEqual([...Array(49).fill(200), 202]);
    expect(new Set(answers.map(({ body }) => body.request_token)).size).toBe(1);
    const id = await idOf(answers[0]!);
    const decided = await Promise.all(
      Array.from({ length: 50 }, (_, i) => approve(i % 2 ? world.running.baseUrl : second.baseUrl, id)),
    );
    expect(decided.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, ...Array(49).fill(409)]);
  });
});
