/** One more broker, in a process of its own, on the store and with the master key of a world. */
import { beforeAll, expect } from 'vitest';
import { TestAgent } from './agent.ts';
import { type BrokerProcess, spawnBroker } from './broker-process.ts';
import { newFolder } from './stores.ts';
import type { World } from './world.ts';

export type Replica = {
  baseUrl: string;
  process: BrokerProcess;
  /** The same agent, which asks this one. */
  asks(agent: TestAgent): TestAgent;
};

/** Starts one, which serves. Whoever starts it ends its process. */
export async function startReplica(world: World): Promise<Replica> {
  const process = spawnBroker({
    ...world.environment,
    PORT: '0',
    AGENT_BROKER_DATA: newFolder(),
    AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
  });
  const baseUrl = await process.serve();
  if (baseUrl === undefined) throw new Error(`The replica did not start: ${process.output().stderr}`);
  return { baseUrl, process, asks: (agent) => new TestAgent({ ...agent, baseUrl }) };
}

/** One for the tests of this `describe`. */
export function givenReplica(world: World): Pick<Replica, 'asks'> {
  let replica: Replica | undefined;
  beforeAll(async () => {
    const started = await startReplica(world);
    replica = started;
    return () => started.process.signal('SIGKILL');
  });
  return {
    asks: (agent) => {
      expect(replica, 'the replica serves').toBeDefined();
      return replica!.asks(agent);
    },
  };
}
