import { describe, expect, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { putGuardrails } from '../../broker/store/governed-versions.ts';
import { approveAndDie } from '../world/after-crash.ts';
import { send, type TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { evidenceOf } from '../world/evidence.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write' };
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(STORES)(`AP-20 kill -9 around an approval on %s${postgresNote}`, (store) => {
  type Scene = {
    world: World;
    organisation: Organisation;
    agents: TestAgent[];
    session: string;
    spawn(): BrokerProcess;
  };

  /** A world whose broker has stopped, so that separate processes can serve it. */
  async function scene(prepare?: (organisation: Organisation, agents: TestAgent[]) => Promise<void>): Promise<Scene> {
    const world = await startWorld(store, { LOG_LEVEL: 'warn' });
    const organisation = await world.organisation();
    await organisation.platform();
    const agents = [await organisation.agent({ name: 'one' }), await organisation.agent({ name: 'two' })];
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    await prepare?.(organisation, agents);
    await world.running.stop();
    const environment = {
      ...world.environment,
      PORT: new URL(world.running.baseUrl).port,
      TEST_BEAT_MS: '250',
    };
    const spawn = () => spawnBroker(environment);
    return { world, organisation, agents, session: token, spawn };
  }

  const approve = ({ world, session }: Scene, id: string) =>
    send(`${world.running.baseUrl}/owner/approvals/${id}/approve`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
      body: '{}',
    });

  const settled = async (agent: TestAgent, id: string) => {
    const { body } = await agent.get(`/v1/approvals/${id}?wait=30`);
    return body;
  };

  test('R4 R5 killed while the platform works: the outcome is unknown, signed, and the call is never sent again', async () => {
    const held: string[] = [];
    const on = await scene(async (_organisation, [agent]) => {
      for (let i = 0; i < sized(1, 2); i++) held.push(await agent!.hold({ ...WRITE, data: { i } }));
    });
    const { world, agents } = on;
    for (const id of held) {
      const child = on.spawn();
      expect(await child.serve(), child.output().stderr).toBeDefined();
      const before = world.upstream.seen.length;
      world.upstream.answer = (request) => {
        child.signal('SIGKILL');
        request.socket.destroy();
      };
      await expect(approve(on, id)).rejects.toThrow();
      await child.ended;
      const next = on.spawn();
      expect(await next.serve(), next.output().stderr).toBeDefined();
      const body = await settled(agents[0]!, id);
      expect(body).toMatchObject({ status: 'approved', executed_at: null });
      expect(body.execution_error).toMatch(/^outcome unknown: the broker stopped while the call was in flight/);
      const receipt = await agents[0]!.get(`/v1/audit/${body.audit_id}/receipt`, { accept: 'application/jose' });
      const payload = JSON.parse(Buffer.from(receipt.text.split('.')[1]!, 'base64url').toString());
      expect(payload).toMatchObject({
        result: 'errored',
        reason: 'outcome_unknown',
        approval: { approval_id: id, how: 'api' },
      });
      // Two further recovery rounds.
      await pause(600);
      expect(world.upstream.seen.length).toBe(before + 1);
      expect((await approve(on, id)).status).toBe(409);
      next.signal('SIGTERM');
      await next.ended;
    }
  });

  test('R2 killed after the decision and before sending: the call is made once before the deadline, and not at all after it', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const [inTime, late, suspended] = await Promise.all(
      [0, 1, 2].map(async (i) => {
        const by = i === 2 ? await organisation.agent() : agent;
        const id: string = await by.hold({ ...WRITE, data: { i } });
        await approveAndDie(world, organisation, id);
        if (i === 1)
          await world.db.updateTable('approvals').set({ expires_at: Date.now() }).where('id', '=', id).execute();
        if (i === 2) await organisation.ask('POST', `/owner/agents/${by.id}/suspend`, {});
        return { id, by };
      }),
    );
    await world.restart();
    expect(await settled(agent, inTime!.id)).toMatchObject({ status: 'approved', result: { status: 200 } });
    const expired = await settled(agent, late!.id);
    expect(expired.execution_error).toMatch(/^approval_expired: .*nothing was sent\.$/);
    expect((await evidenceOf(world, agent, expired.audit_id)).row).toMatchObject({ result: 'blocked' });
    expect((await settled(suspended!.by, suspended!.id)).execution_error).toMatch(/^agent_suspended: /);
    expect(world.upstream.seen.map(({ body }) => JSON.parse(body))).toEqual([{ i: 0 }]);
    await world.restart();
    await pause(300);
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('R2 a restart with new governance decides by the new rules', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const id = await agent.hold({ ...WRITE, data: {} });
    await approveAndDie(world, organisation, id);
    await world.running.stop();
    const running = await serve(readConfig(world.environment), {
      beatMs: 50,
      beforeServing: async ({ broker }) => {
        await pause(200);
        await putGuardrails(broker.store.db, organisation.id, '[{"name":"new","effect":"deny"}]', Date.now());
      },
    });
    try {
      const { services } = running;
      const stored = () => findApproval(services.broker.store.db, organisation.id, id);
      await vi.waitUntil(async () => (await stored())!.exec_state === 'failed', { timeout: 10_000 });
      expect((await stored())!.execution_error).toMatch(/^denied_by_guardrail: /);
      expect(world.upstream.seen).toEqual([]);
    } finally {
      await running.stop();
    }
  });
});
