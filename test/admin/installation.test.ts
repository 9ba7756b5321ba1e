/** The state of the installation for admins. */
import { describe, expect, test } from 'vitest';
import { expectEnvelope } from '../world/evidence.ts';
import { startReplica } from '../world/replica.ts';
import { STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

describe.each(STORES)('GET /owner/installation on %s', (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const read = async () => (await organisation.ask('GET', '/owner/installation')).body;

  test('returns the store, and the answering process with its start and version', async () => {
    const { version } = (await organisation.ask('GET', '/version')).body;
    const body = await read();
    expect(body).toEqual({
      store,
      last_backup_at: null,
      processes: [
        {
          id: world.running.broker.instanceId,
          version,
          started_at: expect.any(String),
          seen_at: expect.any(String),
          answers: true,
        },
      ],
    });
    const [{ started_at, seen_at }] = body.processes;
    expect(Date.parse(started_at)).toBeLessThanOrEqual(Date.parse(seen_at));
    expect(Math.abs(Date.now() - Date.parse(seen_at)), 'a moment ago').toBeLessThan(20_000);
  });

  test('is for admins only', async () => {
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      expectEnvelope(await organisation.ask('GET', '/owner/installation', undefined, owner), 403, 'forbidden');
    }
  });

  test.runIf(store === 'postgres')(
    'lists each replica, and drops one that was killed and sends no heartbeat',
    async () => {
      const replica = await startReplica(world);
      try {
        const { processes } = await read();
        expect(processes.map(({ answers }: { answers: boolean }) => answers)).toEqual([true, false]);
      } finally {
        replica.process.signal('SIGKILL');
      }
      // Not by waiting: others would remove it from the store in that time, too.
      world.clock.skewMs = 21_000;
      await expect.poll(async () => (await read()).processes.length, { timeout: 15_000 }).toBeLessThan(2);
    },
  );
});
