/** When the pushing process is killed, another continues: no row is lost, the order stays, and what is sent twice is the same batch. */
import { describe, expect, test } from 'vitest';
import { spawnBroker } from '../world/broker-process.ts';
import { startReplica } from '../world/replica.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { rowsIn, startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { type Organisation, READ, shared, startWorld, type World } from '../world/world.ts';

/** Set KILLS for more of them in a manual run. */
const KILLS = Number(process.env.KILLS ?? 1);

const receiver = shared(() => startAuditReceiver());

/** Returns all received batches by id, answered or not, and checks that each had the same rows each time. */
function batches(): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const { body, headers } of receiver.seen) {
    const indexes = rowsIn(body).map(({ index }) => index);
    const id = String(headers['webhook-id']);
    expect(found.get(id) ?? indexes).toEqual(indexes);
    found.set(id, indexes);
  }
  return found;
}

/** Expects that no row is missing or out of order, whatever was received twice. */
function expectAllInOrder(count: number): void {
  const once = [...batches().values()].flat();
  expect(once).toEqual(Array.from({ length: once.length }, (_, at) => at));
  expect(once.length).toBeGreaterThanOrEqual(count);
  // A batch is repeated directly, never after a later one.
  const came = receiver.seen.map(({ body }) => rowsIn(body)[0]!.index);
  expect(came).toEqual(came.toSorted((a, b) => a - b));
}

async function pushing(store: (typeof STORES)[number]): Promise<{ world: World; organisation: Organisation }> {
  receiver.forget();
  const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: receiver.address });
  const organisation = await world.demoOrganisation(receiver.platform);
  const sink = { name: 'siem', kind: 'webhook', url: `${receiver.url}/in`, from: 'beginning' };
  expect((await organisation.ask('POST', '/owner/audit-sinks', sink)).status).toBe(201);
  await receiver.waitFor(1);
  return { world, organisation };
}

describe.each(ONE_STORE)(`kill -9 on %s${postgresNote}`, (store) => {
  test(
    'between the answer of the receiver and the cursor: the same batch is sent again, and no row is lost',
    async () => {
      const { world, organisation } = await pushing(store);
      const agent = await organisation.agent();
      await world.running.stop();
      const PORT = new URL(world.running.baseUrl).port;
      const environment = { ...world.environment, PORT };
      const spawn = () => spawnBroker(environment);
      const answer = receiver.answer;
      let rows = 0;
      for (let kill = 0; kill < KILLS; kill++) {
        const child = spawn();
        await child.serve();
        const before = receiver.seen.length;
        // The receiver has the batch and answers; the broker is killed before it reads the answer. It is stopped first (SIGSTOP): on a busy
        // machine it could otherwise store its cursor between the two lines.
        receiver.answer = (request, response, body) => {
          if (request.url?.startsWith('/v1/')) return answer!(request, response, body);
          child.signal('SIGSTOP');
          response.writeHead(204).end();
          child.signal('SIGKILL');
        };
        for (let i = 0; i < 4; i++) rows += (await agent.act(READ).catch(() => ({ status: 0 }))).status === 200 ? 1 : 0;
        await expect.poll(() => receiver.seen.length, { timeout: 15_000 }).toBeGreaterThan(before);
        await child.ended;
      }
      receiver.answer = answer;
      const last = spawn();
      await last.serve();
      expect((await agent.act(READ)).status).toBe(200);
      await expect.poll(() => receiver.rows().length, { timeout: 15_000 }).toBeGreaterThanOrEqual(1);
      await expect
        .poll(() => [...batches().values()].flat().length, { timeout: 15_000 })
        .toBeGreaterThanOrEqual(rows + 2);
      expectAllInOrder(rows + 2);
      // At least one batch was received twice.
      expect(receiver.seen.length).toBeGreaterThan(batches().size);
      last.signal('SIGTERM');
      await last.ended;
    },
    60_000 + KILLS * 20_000,
  );
});

describe.runIf(STORES.includes('postgres'))('two replicas', () => {
  test('one replica pushes; when it is killed the other continues within seconds', async () => {
    const { world, organisation } = await pushing('postgres');
    const agent = await organisation.agent();
    const replica = await startReplica(world);
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(200);
    await receiver.waitFor(4);
    await world.running.stop();
    for (let i = 0; i < 3; i++) expect((await replica.asks(agent).act(READ)).status).toBe(200);
    await receiver.waitFor(7, 10_000);
    await world.restart();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    replica.process.signal('SIGKILL');
    await replica.process.ended;
    const killed = Date.now();
    for (let i = 0; i < 3; i++) expect((await agent.act(READ)).status).toBe(200);
    await receiver.waitFor(10, 15_000);
    expect(Date.now() - killed).toBeLessThan(scaledTimeout(10_000));
    expectAllInOrder(10);
  }, 180_000);
});
