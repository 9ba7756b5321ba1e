/** The procedure in docs/operations.md: replacing the master key of two replicas while they serve. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sealedWith } from '../../broker/crypto/seal.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { listSealed, SEALED } from '../../broker/store/sealed.ts';
import { TestAgent } from '../world/agent.ts';
import { type Balanced, BalancedLoad, startBehind } from '../world/balanced-load.ts';
import { runCommand } from '../world/command.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { startWorld, type World } from '../world/world.ts';

const CHANGE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const newKey = () => randomBytes(32).toString('base64');

/** Returns how many master keys the stored values are sealed under. */
async function keysInUse({ environment }: World): Promise<number> {
  const store = openPostgres(environment.DATABASE_URL!, { connections: 3, onError: () => {} });
  try {
    const keys = new Set<string>();
    for (const column of SEALED)
      for (const { sealed } of await listSealed(store.db, column, '', 10_000)) keys.add(sealedWith(sealed));
    return keys.size;
  } finally {
    await store.close();
  }
}

describe.runIf(STORES.includes('postgres'))(`replacing the master key of replicas${postgresNote}`, () => {
  test('loses no call, and leaves no value under the old key', { timeout: 360_000 }, async () => {
    const [old, fresh] = [newKey(), newKey()];
    const world = await startWorld('postgres', { AGENT_BROKER_MASTER_KEY: old });
    const agent = await (await world.demoOrganisation()).agent();
    await world.running.stop();
    const load = new BalancedLoad();
    const start = (current: string, previous?: string) =>
      startBehind(world, {
        more: {
          AGENT_BROKER_MASTER_KEY: current,
          ...(previous !== undefined && { AGENT_BROKER_MASTER_KEY_PREVIOUS: previous }),
        },
      });
    // Also with one replica at a time, the old and the new one of each restart serve beside each other.
    let serving: Balanced[] = [];
    for (let replica = 0; replica < sized(1, 2); replica++) serving.push(load.add(await start(old)));
    /** Restarts each replica with these keys, the new one first. */
    const restartAll = async (current: string, previous?: string) => {
      const next: Balanced[] = [];
      for (const one of serving) {
        next.push(load.add(await start(current, previous)));
        // By both.
        await load.more(4);
        await load.stop(one);
      }
      serving = next;
    };
    // Calls with an Idempotency-Key, whose responses are stored sealed.
    load.begin(agent, CHANGE, (call) => ({ 'idempotency-key': `call-${call}` }));
    try {
      await load.more(4);
      await restartAll(old, fresh);
      await restartAll(fresh, old);
      await load.more(4);
      expect(await keysInUse(world)).toBe(2);
      const { AGENT_BROKER_DATA = '' } = serving[0]!.environment;
      const rotated = await runCommand(['keys', 'rotate', 'master'], {
        cwd: AGENT_BROKER_DATA,
        env: { AGENT_BROKER_DATA },
      });
      expect(rotated.stdout, rotated.stderr).toMatch(/stored secrets were re-wrapped/);
      expect(await keysInUse(world)).toBe(1);
      await restartAll(fresh);
      await load.more(4);
      await load.end();
      for (const { url } of serving) {
        const again = await new TestAgent({ ...agent, baseUrl: url }).act(CHANGE, { 'idempotency-key': 'call-0' });
        expect([again.status, again.headers.get('idempotency-replayed')], again.text).toEqual([200, 'true']);
      }
      expect(await start(old)).toContain('This is not the master key');
    } finally {
      load.kill();
    }
    expect(load.calls).toBeGreaterThan(20);
  });
});
