/** The sender is killed, or stops: another process takes over, no notice is lost, and a repeated message has the same id. */
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { refuseOutcomes } from '../world/faults.ts';
import { startReplica } from '../world/replica.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { thorough } from '../world/runner/thorough.ts';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { query } from '../world/store-contents.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { shared, startWorld, WRITE } from '../world/world.ts';

const HELD = 12;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const server = shared(() => startChannelServer());

/** The messages are sent again in the same way on both stores. On PostgreSQL the lease of a killed sender is also tested by `two replicas` below. */
const KILLED = thorough ? STORES : STORES.slice(0, 1);

describe.each(KILLED)(`kill -9 of the sender on %s${postgresNote}`, (store) => {
  test('while messages are in flight: all arrive, repeated ones with the same id', async () => {
    server.seen.length = 0;
    const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: server.address });
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const channel = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
    expect((await organisation.ask('POST', '/owner/channels', channel)).status).toBe(201);
    await world.running.stop();
    const environment = {
      ...world.environment,
      PORT: new URL(world.running.baseUrl).port,
    };
    const spawn = () => spawnBroker(environment);
    const first = spawn();
    const second = spawn();
    await first.serve();
    // The first requests are answered at once; the others never, so that the kill happens between answer and mark, and before the answer.
    let answered = 0;
    server.answer = (_request, response) => {
      if (answered++ < 4) response.writeHead(204).end();
    };
    const held: string[] = [];
    for (let i = 0; i < HELD; i++) held.push(await agent.hold({ ...WRITE, data: { i } }));
    await server.waitFor(5);
    first.signal('SIGKILL');
    await first.ended;
    server.answer = (_request, response) => response.writeHead(204).end();
    const killed = Date.now();
    expect(await second.serve()).toBeDefined();
    const ready = Date.now();
    const told = () => new Set(server.came().map(({ data }) => data.id));
    await expect.poll(() => told().size, { timeout: 10_000, interval: 10 }).toBe(HELD);
    // On a store of its own the next process sends immediately; on a shared one the lease of the dead one has to expire.
    expect(Date.now() - (store === 'sqlite' ? ready : killed)).toBeLessThan(
      scaledTimeout(store === 'sqlite' ? 2_000 : 5_500),
    );
    await expect
      .poll(() => query(environment, "select count(*) as due from notice_deliveries where state = 'due'"))
      .toEqual([{ due: store === 'sqlite' ? 0 : '0' }]);
    expect([...told()].toSorted()).toEqual(held.toSorted());
    for (const id of held) {
      const copies = server.came().filter(({ data }) => data.id === id);
      expect(new Set(copies.map((one) => one.id)).size).toBe(1);
    }
    // Messages that were answered and marked before the kill arrived once.
    expect(server.seen.length).toBeLessThan(2 * HELD);
    second.signal('SIGTERM');
    await second.ended;
  }, 180_000);
});

describe.each(STORES)(
  `kill -9 of the sender while a message about a decided call is in flight on %s${postgresNote}`,
  (store) => {
    test.each([
      ['before the answer', false],
      ['between the answer and the outcome', true],
    ])(
      '%s: the outcome is sent by the next process',
      async (_when, isAnswered) => {
        server.seen.length = 0;
        const arrived = Promise.withResolvers<() => void>();
        server.answer = (_request, response) => arrived.resolve(() => response.writeHead(204).end());
        const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: server.address });
        const organisation = await world.demoOrganisation();
        const agent = await organisation.agent();
        const channel = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
        await expectStatus(201, organisation.ask('POST', '/owner/channels', channel));
        const acceptOutcomes = await refuseOutcomes(world);
        await world.running.stop();
        const { port } = new URL(world.running.baseUrl);
        const sender = spawnBroker({ ...world.environment, PORT: port, LOG_LEVEL: 'error' });
        await sender.serve();
        const { body } = await expectStatus(202, agent.act(WRITE));
        const answer = await arrived.promise;
        await expectStatus(200, organisation.ask('POST', `/owner/approvals/${body.approval_id}/deny`, {}));
        await expect.poll(() => query(world.environment, 'select id from notices')).toEqual([]);
        server.answer = (_request, response) => response.writeHead(204).end();
        if (isAnswered) {
          answer();
          // The process gets as far as to the outcome, which the store refuses.
          await expect.poll(() => JSON.stringify(sender.output())).toContain('sending notices failed');
        }
        sender.signal('SIGKILL');
        await sender.ended;
        await world.restart();
        await acceptOutcomes();
        await server.waitFor(2);
        expect(server.came().map(({ type, data }) => [type, data.id])).toEqual([
          ['call_held.opened', body.approval_id],
          ['call_held.outcome', body.approval_id],
        ]);
      },
      60_000,
    );
  },
);

describe.runIf(STORES.includes('postgres'))('two replicas', () => {
  test('one sends; when it stops the other takes over immediately, when it is killed within five seconds', async () => {
    server.seen.length = 0;
    server.answer = (_request, response) => response.writeHead(204).end();
    const world = await startWorld('postgres', { AGENT_BROKER_ALLOW_PRIVATE: server.address });
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const channel = { name: 'hook', kind: 'webhook', url: `${server.url}/hook` };
    await organisation.ask('POST', '/owner/channels', channel);
    const replica = await startReplica(world);
    const holder = async () => (await query(world.environment, 'select holder from leases'))[0]!.holder;
    const mine = world.running.broker.instanceId;
    await expect.poll(holder).toBe(mine);
    // Held at the replica that does not send: notified by the one that does.
    await replica.asks(agent).act(WRITE);
    await server.waitFor(1, 2_000);
    await world.running.stop();
    const stopped = Date.now();
    await replica.asks(agent).act({ ...WRITE, data: { i: 2 } });
    await server.waitFor(2, 3_000);
    expect(Date.now() - stopped).toBeLessThan(scaledTimeout(2_500));
    await world.restart();
    await pause(1_200);
    expect(await holder()).not.toBe(world.running.broker.instanceId);
    replica.process.signal('SIGKILL');
    await replica.process.ended;
    const killed = Date.now();
    await agent.act({ ...WRITE, data: { i: 3 } });
    await server.waitFor(3, 6_000);
    expect(Date.now() - killed).toBeLessThan(scaledTimeout(5_000));
    expect(server.seen).toHaveLength(3);
  }, 180_000);
});
