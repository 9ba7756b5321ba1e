/** Calls one after the other, each to the next of several replicas, as a balancer spreads them; none may fail. */
import { expect } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { TestAgent } from './agent.ts';
import { type BrokerProcess, spawnBroker } from './broker-process.ts';
import { newFolder } from './stores.ts';
import type { World } from './world.ts';

export type Balanced = { url: string; process: BrokerProcess; environment: Record<string, string> };

/** Starts a replica behind the address of the world's broker. Answers what a start that fails says. `program`: of another build. */
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

export class BalancedLoad {
  calls = 0;
  readonly #all: Balanced[] = [];
  #serving: Balanced[] = [];
  #done = false;
  #loading: Promise<void> | undefined;

  /** It takes calls from now on. */
  add(started: Balanced | string): Balanced {
    if (typeof started === 'string') throw new Error(started);
    this.#all.push(started);
    this.#serving = [...this.#serving, started];
    return started;
  }

  /** Takes it out first, as a balancer does, and stops it once it was asked for the last time. */
  async stop(one: Balanced): Promise<void> {
    this.#serving = this.#serving.filter((each) => each !== one);
    await this.more(2);
    one.process.signal('SIGTERM');
    await one.process.ended;
  }

  /** `action`: of each call, by its number. */
  begin(agent: TestAgent, action: Record<string, unknown>, headers: (call: number) => Record<string, string>): void {
    this.#loading = (async () => {
      while (!this.#done) {
        const call = this.calls++;
        const { url } = this.#serving[call % this.#serving.length]!;
        const answer = await new TestAgent({ ...agent, baseUrl: url }).act(action, headers(call));
        expect(answer.status, answer.text).toBe(200);
      }
    })();
    this.#loading.catch(() => {});
  }

  /** Waits until so many more were made. */
  async more(calls: number): Promise<void> {
    const before = this.calls;
    await Promise.race([
      this.#loading,
      expect.poll(() => this.calls, { timeout: 30_000 }).toBeGreaterThan(before + calls),
    ]);
  }

  /** Throws what failed. */
  async end(): Promise<void> {
    this.#done = true;
    await this.#loading;
  }

  kill(): void {
    this.#done = true;
    for (const { process } of this.#all) process.signal('SIGKILL');
  }
}
