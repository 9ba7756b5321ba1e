/** A receiver that is down under load gets every row exactly once by id and in order; one that hangs delays nothing else. */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { afterFile } from '../world/runner/after-file.ts';
import { type CameRow, startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, READ, shared, WRITE } from '../world/world.ts';

/** Length of the outage: set OUTAGE_SECONDS to ten minutes in a manual run. */
const OUTAGE_MS = Number(process.env.OUTAGE_SECONDS ?? 4) * 1000;
const CALLERS = 4;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

const receiver = shared(() => startAuditReceiver());
const hanging = shared(() => startAuditReceiver());
const platform = shared(() => startAuditReceiver());
beforeAll(async () => {
  hanging.answer = () => {};
  afterFile(async () => {
    await receiver.close();
    await hanging.close();
    await platform.close();
  });
});

/** Expects all rows from 0 on, each once and in order. */
function expectEachOnce(rows: readonly CameRow[]): void {
  expect(rows.map(({ index }) => index)).toEqual(rows.map((_, at) => at));
  expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
}

describe.each(ONE_STORE)(`an outage on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({
    AGENT_BROKER_ALLOW_PRIVATE: `${receiver.address},${hanging.address},${platform.address}`,
  }));

  test(
    'a collector that is down under load receives every row exactly once by id, in order',
    async () => {
      const organisation = await world.demoOrganisation(platform.platform);
      const agents = [];
      for (let i = 0; i < CALLERS; i++) agents.push(await organisation.agent({ name: `caller-${i}` }));
      const add = (name: string, url: string) =>
        organisation.ask('POST', '/owner/audit-sinks', { name, kind: 'webhook', url, from: 'beginning' });
      expect((await add('siem', `${receiver.url}/in`)).status).toBe(201);
      expect((await add('hangs', `${hanging.url}/in`)).status).toBe(201);
      const sink = async () =>
        (await organisation.ask('GET', '/owner/audit-sinks')).body.sinks.find(
          (one: { name: string }) => one.name === 'siem',
        );
      await receiver.waitFor(2);
      let calls = 0;
      let slowest = 0;
      let isOver = false;
      onTestFinished(() => {
        isOver = true;
      });
      const answers = new Set<number>();
      const load = agents.map(async (agent) => {
        while (!isOver) {
          const began = performance.now();
          const { status } = await agent.act(calls % 7 === 0 && calls < 200 ? { ...WRITE, data: { calls } } : READ);
          answers.add(status);
          slowest = Math.max(slowest, performance.now() - began);
          calls++;
          await pause(10);
        }
      });
      const began = performance.now();
      // First it answers an error, then it refuses connections.
      receiver.status = 503;
      await pause(OUTAGE_MS / 2);
      await expect
        .poll(sink, { timeout: 30_000 })
        .toMatchObject({ last_error: 'It answered 503.', failing_since: expect.any(String) });
      const before = receiver.rows().length;
      await receiver.pause();
      await pause(OUTAGE_MS / 2);
      await expect.poll(async () => (await sink()).rows_behind).toBeGreaterThan(0);
      await receiver.resume();
      receiver.status = 204;
      const down = performance.now() - began;
      isOver = true;
      await Promise.all(load);
      expect([...answers].toSorted()).toEqual([200, 202]);
      const size = async () => (await organisation.ask('GET', '/owner/log')).body;
      await expect.poll(async () => (await size()).waiting).toBe(0);
      const rows = await receiver.waitFor((await size()).size, 90_000);
      const after = performance.now() - began - down;
      expectEachOnce(rows);
      expect(rows.length).toBeGreaterThan(calls);
      expect(before).toBeLessThan(rows.length);
      await expect.poll(async () => (await sink()).rows_behind).toBe(0);
      expect(await sink()).toMatchObject({ failing_since: null, failures: 0, last_error: null });
      // No call waited for a receiver, although one hung all the time.
      expect(slowest).toBeLessThan(5_000);
      if (process.env.OUTAGE_SECONDS)
        console.error(
          `${calls} calls, ${rows.length} rows, down for ${Math.round(down / 1000)} s, all there ${Math.round(after)} ms later, slowest call ${Math.round(slowest)} ms`,
        );
    },
    OUTAGE_MS + 150_000,
  );

  test('an outage that began while the clock was ahead does not last for as long as the clock was ahead', async () => {
    const organisation = await world.demoOrganisation(platform.platform);
    receiver.status = 503;
    world.clock.skewMs = 40 * 3_600_000;
    onTestFinished(() => {
      receiver.status = 204;
      world.clock.skewMs = 0;
    });
    const sink = { name: 'siem', kind: 'webhook', url: `${receiver.url}/in`, from: 'beginning' };
    expect((await organisation.ask('POST', '/owner/audit-sinks', sink)).status).toBe(201);
    const stored = () =>
      world.db
        .selectFrom('audit_sinks')
        .select(['failures', 'retry_at'])
        .where('organisation_id', '=', organisation.id)
        .executeTakeFirstOrThrow();
    await expect.poll(async () => (await stored()).failures, { timeout: 30_000 }).toBeGreaterThan(0);
    receiver.status = 204;
    world.clock.skewMs = 0;
    await expect.poll(stored, { timeout: 60_000 }).toMatchObject({ failures: 0, retry_at: null });
  }, 180_000);
});
