/** Sequential calls, distributed over several replicas as by a balancer; none may fail. */
import { expect } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { expectStatus, TestAgent } from './agent.ts';
import { type BrokerProcess, spawnBroker } from './broker-process.ts';
import { newFolder } from './stores.ts';
import type { World } from './world.ts';

export type Balanced = { url: string; process: BrokerProcess; environment: Record<string, string> };

/** Starts a replica behind the address of the world's broker. Returns the error text of a failed start. `program`: of another build. */
export async function startBehind(
  world: World,
  { more = {}, program }: { more?: Record<string, string>; program?: string } = {},
): Promise<Balanced | string> {
  const port = await freePort();
  const environment = {
    ...world.environment,
    PORT: `${port}`,
    BASE_URL: world.running.baseUrl,
    AGENT_BROKER_DATA: newFolder(),
    ...more,
  };
  const process = spawnBroker(environment, [], program);
  const served = await process.serve();
  return served === undefined ? process.output().stderr : { url: `http://localhost:${port}`, process, environment };
}

/** Between one call and the next. */
const PAUSE_MS = 10;

export class BalancedLoad {
  calls = 0;
  readonly #all: Balanced[] = [];
  #serving: Balanced[] = [];
  #done = false;
  #loading: Promise<void> | undefined;

  /** Adds the replica to the rotation. */
  add(started: Balanced | string): Balanced {
    if (typeof started === 'string') throw new Error(started);
    this.#all.push(started);
    this.#serving = [...this.#serving, started];
    return started;
  }

  /** Removes the replica from the rotation, as a balancer does, and stops it after its last request. */
  async stop(one: Balanced): Promise<void> {
    this.#serving = this.#serving.filter((each) => each !== one);
    await this.more(2);
    one.process.signal('SIGTERM');
    await one.process.ended;
  }

  /** Starts the load. `action`: returns the action of each call, by its number. */
  begin(agent: TestAgent, action: Record<string, unknown>, headers: (call: number) => Record<string, string>): void {
    this.#loading = (async () => {
      while (!this.#done) {
        const call = this.calls++;
        const { url } = this.#serving[call % this.#serving.length]!;
        await expectStatus(200, new TestAgent({ ...agent, baseUrl: url }).act(action, headers(call)));
        // Many calls fall into each restart all the same, which calls without a pause would slow down.
        await new Promise((later) => setTimeout(later, PAUSE_MS));
      }
    })();
    this.#loading.catch(() => {});
  }

  /** Waits until this number of further calls was made. */
  async more(calls: number): Promise<void> {
    const before = this.calls;
    await Promise.race([
      this.#loading,
      expect.poll(() => this.calls, { timeout: 30_000 }).toBeGreaterThan(before + calls),
    ]);
  }

  /** Stops the load. Throws the first failure. */
  async end(): Promise<void> {
    this.#done = true;
    await this.#loading;
  }

  kill(): void {
    this.#done = true;
    for (const { process } of this.#all) process.signal('SIGKILL');
  }
}
