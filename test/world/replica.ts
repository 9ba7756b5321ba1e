/** A further broker, in a separate process, on the store and with the master key of a world. */
import { beforeAll, expect } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { TestAgent } from './agent.ts';
import { type BrokerProcess, spawnBroker } from './broker-process.ts';
import { newFolder } from './stores.ts';
import type { World } from './world.ts';

export type Replica = {
  baseUrl: string;
  process: BrokerProcess;
  /** Returns the same agent, calling this replica. */
  asks(agent: TestAgent): TestAgent;
};

/**
 * Starts a replica. Its process ends with the test file at the latest. `behind`: with the base URL of the world's own broker, as behind a load balancer, so that its links
 * lead there; requests go to its port all the same.
 */
export async function startReplica(world: World, { behind = false } = {}): Promise<Replica> {
  const port = behind ? await freePort() : 0;
  const process = spawnBroker({
    ...world.environment,
    PORT: String(port),
    ...(behind && { BASE_URL: world.running.baseUrl }),
    AGENT_BROKER_DATA: newFolder(),
    AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
  });
  const served = await process.serve();
  if (served === undefined) throw new Error(`The replica did not start: ${process.output().stderr}`);
  const baseUrl = behind ? `http://localhost:${port}` : served;
  return { baseUrl, process, asks: (agent) => new TestAgent({ ...agent, baseUrl }) };
}

/** A replica for the tests of this `describe`. */
export function givenReplica(world: World, options: { behind?: boolean } = {}): Pick<Replica, 'asks' | 'baseUrl'> {
  let replica: Replica | undefined;
  beforeAll(async () => {
    const started = await startReplica(world, options);
    replica = started;
    return () => started.process.signal('SIGKILL');
  });
  const serving = (): Replica => {
    expect(replica, 'the replica serves').toBeDefined();
    return replica!;
  };
  return {
    asks: (agent) => serving().asks(agent),
    get baseUrl() {
      return serving().baseUrl;
    },
  };
}
