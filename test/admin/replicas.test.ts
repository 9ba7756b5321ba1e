/** Two brokers on one PostgreSQL: an owner's change at one decides the next call of the other (MR-04). */
import { beforeEach, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { withoutCalls } from '../world/evidence.ts';
import { givenReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, READ } from '../world/world.ts';

const ROUNDS = 3;

describe.runIf(STORES.includes('postgres'))(`owners’ changes and replicas on postgres${postgresNote}`, () => {
  let there: TestAgent;
  const world = givenWorld('postgres');
  const replica = givenReplica(world);
  const organisation = fresh(() => world.demoOrganisation());
  beforeEach(async () => {
    const agent = await organisation.agent({ policy: await organisation.policy([{ effect: 'allow' }], 'all') });
    there = replica.asks(agent);
  });

  const change = async (path: string, body: unknown = {}) => {
    const { status, text } = await organisation.ask('POST', path, body);
    expect(status, text).toBeLessThan(300);
  };
  const allowed = async () => expect((await there.act(READ)).status).toBe(200);
  const refused = async (reason: string) => {
    const answer = await withoutCalls(world, () => there.act(READ));
    expect([answer.status, answer.body.reason], answer.text).toEqual([403, reason]);
  };

  test('a platform, a policy, an assignment, guardrails', async () => {
    await change('/owner/policies', { name: 'none', rules: [{ effect: 'deny' }] });
    for (let round = 0; round < ROUNDS; round++) {
      await allowed();
      await change('/owner/platforms/demo/suspend');
      await refused('platform_suspended');
      await change('/owner/platforms/demo/resume');
      await allowed();
      await change('/owner/policies/all', { rules: [{ effect: 'deny' }] });
      await refused('denied_by_policy');
      await change('/owner/policies/all', { rules: [{ effect: 'allow' }] });
      await allowed();
      await change(`/owner/agents/${there.id}/policy`, { policy: 'none' });
      await refused('denied_by_policy');
      await change(`/owner/agents/${there.id}/policy`, { policy: 'all' });
      await allowed();
      await change('/owner/guardrails', { guardrails: [{ name: 'freeze', effect: 'deny' }] });
      await refused('denied_by_guardrail');
      await change('/owner/guardrails', { guardrails: [] });
    }
  });

  test('stopping and resuming all agents', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      await allowed();
      await change('/owner/agents/suspend-all');
      await refused('agent_suspended');
      await change('/owner/agents/resume-all');
    }
    await allowed();
  });

  test('a secret', async () => {
    const [{ id }] = (await organisation.ask('GET', '/owner/connections')).body.connections;
    for (let round = 0; round < ROUNDS; round++) {
      const secret = `CANARY-${round}-0123456789`;
      await change(`/owner/connections/${id}/secret`, { secret });
      await allowed();
      expect(world.upstream.seen.at(-1)!.headers.authorization).toBe(`Bearer ${secret}`);
    }
    expect((await organisation.ask('DELETE', `/owner/connections/${id}`)).status).toBe(200);
    await withoutCalls(world, async () => expect((await there.act(READ)).status).toBe(412));
  });
});
