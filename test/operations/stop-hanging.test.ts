/** Stopping a broker while PostgreSQL hangs. */
import { describe, expect, test } from 'vitest';
import { spawnBroker } from '../world/broker-process.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';

describe.runIf(STORES.includes('postgres'))(`stopping${postgresNote}`, () => {
  test('does not wait for a hanging PostgreSQL at each step, and exits with 0', { timeout: 180_000 }, async () => {
    const cut = await startFaultProxy(await newDatabase());
    const broker = spawnBroker({
      DATABASE_URL: cut.url,
      PORT: '0',
      AGENT_BROKER_DATA: newFolder(),
      AGENT_BROKER_KEY_FILE: `${newFolder()}/master.key`,
      DRAIN_SECONDS: '0',
    });
    expect(await broker.serve(), broker.output().stderr).toBeDefined();
    cut.freeze();
    const began = performance.now();
    broker.signal('SIGTERM');
    expect(await broker.ended).toEqual({ code: 0, signal: null });
    expect(broker.output().stderr).toContain('the store does not answer: the broker stops without it');
    // 9 s; it took 110 s when each step waited for its own statement.
    expect(performance.now() - began).toBeLessThan(60_000);
  });
});
