import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const READ = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' };
const CONNECTIONS = 16;
const WARM_UP = 800;
const CALLS = 1_200;

describe.each(ONE_STORE)(`memory that a call leaves behind, on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  let child: BrokerProcess;
  beforeAll(async () => {
    const world = await startWorld(store, { LOG_LEVEL: 'warn' });
    const organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
    await world.running.stop();
    const environment = { ...world.environment, AGENT_BROKER_LIMIT_FACTOR: '1000', PORT: new URL(agent.baseUrl).port };
    child = spawnBroker(environment, ['--trace-gc-nvp', '--max-semi-space-size=4']);
    expect(await child.serve(), child.output().stderr).toBe(agent.baseUrl);
  });

  async function call(calls: number): Promise<void> {
    let left = calls;
    const one = async () => {
      while (left-- > 0) expect((await agent.act(READ)).status).toBe(200);
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, one));
  }

  /**
   * Bytes that survived two young-generation collections, in all threads so far (V8's --trace-gc-nvp: `gc=s … promoted=1`, from Node 26 on
   * as JSON).
   */
  const promoted = () => {
    let bytes = 0;
    for (const [, found] of child.output().stdout.matchAll(/\bgc"?[=:]"?s\b.*\bpromoted"?[=:](\d+)/g))
      bytes += Number(found);
    return bytes;
  };

  test('is freed by the next young-generation collection', async () => {
    await call(WARM_UP);
    const before = promoted();
    expect(before, 'V8 tells what it does').toBeGreaterThan(0);
    await call(CALLS);
    // A getter in an object literal, or a function assigned to a property, is allocated in the old generation and retains its call: 9 to 12
    // KB each. Code that is still being compiled takes some memory too.
    expect((promoted() - before) / CALLS).toBeLessThan(3_000);
  });
});
