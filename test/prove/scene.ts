/** A store that brokers are started on and killed, one after the other, and the work that runs meanwhile. */
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { type Answer, jsonRequest, send } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import type { Random } from '../world/random.ts';
import { afterFile } from '../world/runner/after-file.ts';
import type { StoreKind } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';
import type { Ledger } from './ledger.ts';
import { openReader, type Reader } from './store-reader.ts';

export type Scene = {
  store: StoreKind;
  world: World;
  organisation: Organisation;
  random: Random;
  ledger: Ledger;
  reader: Reader;
  /** Environment of the brokers that are killed. */
  environment: Record<string, string>;
  baseUrl: string;
  spawn(more?: Record<string, string>, program?: string): BrokerProcess;
  /** Returns the output of all spawned brokers. */
  output(): string;
  /** Sends a request of the owner. */
  ask(method: string, path: string, body?: unknown): Promise<Answer>;
};

/** Work that runs while brokers are killed. */
export type Work = {
  /** Starts or continues the work. */
  resume(): void;
  pause(): Promise<void>;
  /** The kill happens within this time of the work's beginning, or of a moment; default MAX_WORK_MS. */
  longestMs?: number;
  /** Resolves at a moment that is worth a kill; without it any moment is equally good. */
  moment?(): Promise<void>;
  /** Called before the next broker starts. */
  afterKill?(): Promise<void>;
  /** Checks invariants of this work alone, once the next broker serves (since `served`, milliseconds since the epoch) and has recovered. Throws. */
  check?(served: number): Promise<void>;
  /** Returns how much was done so far; it must increase after the last kill. */
  progress(): number;
  /** Returns recent results, for the error when there is no progress. */
  lately?(): string;
};

/** Sets up a scene, with `more` in the environment. `prepare` runs with a serving broker, which is stopped when it returns work. */
export async function setScene<Prepared extends Work | undefined>(
  store: StoreKind,
  prepare: (scene: Scene) => Promise<Prepared>,
  by: { random: Random; ledger: Ledger },
  more: Record<string, string> = {},
): Promise<{ scene: Scene; work: Prepared }> {
  const world = await startWorld(more.DATABASE_URL === undefined ? store : 'sqlite', { LOG_LEVEL: 'warn', ...more });
  const organisation = await world.organisation();
  const session = mintOwnerSession(world.running.broker, organisation.owner).token;
  const { baseUrl } = world.running;
  const environment = {
    ...world.environment,
    PORT: new URL(baseUrl).port,
    // Fast recovery sweeps: what takes 20 s in production takes a second.
    TEST_BEAT_MS: '250',
  };
  const children = new Set<BrokerProcess>();
  afterFile(() => {
    for (const child of children) child.signal('SIGKILL');
  });
  const scene: Scene = {
    ...by,
    store,
    world,
    organisation,
    environment,
    baseUrl,
    reader: await openReader(world.environment),
    spawn: (other = {}, program) => {
      const child = spawnBroker({ ...environment, ...other }, [], program);
      children.add(child);
      return child;
    },
    output: () =>
      [...children]
        .map((child) => child.output())
        .map(({ stdout, stderr }) => stdout + stderr)
        .join('\n'),
    ask: (method, path, body) =>
      send(baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${session}` })),
  };
  const work = await prepare(scene);
  if (work) await world.running.stop();
  return { scene, work };
}

/** Adds the brokers' recent error log lines to an error. */
export function withLog(scene: Scene, cut: number, error: unknown): Error {
  const lines = scene
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":"error"'));
  return new Error([`after cut ${cut}: ${(error as Error).message}`, ...lines.slice(-3)].join('\n'), { cause: error });
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Workers that repeat `once` while they are not paused; it returns whether it made progress. */
export function workers(
  count: number,
  once: (worker: number, turn: number) => Promise<boolean>,
): Pick<Work, 'resume' | 'pause' | 'progress'> {
  let running = false;
  let turn = 0;
  let done = 0;
  let wrong: Error | undefined;
  let under: Promise<void>[] = [];
  const work = async (worker: number) => {
    while (running) {
      try {
        if (await once(worker, turn++)) done++;
      } catch (error) {
        // TypeError: fetch throws it for a lost or refused connection.
        if (!(error instanceof TypeError)) wrong ??= error as Error;
        await pause(20);
      }
    }
  };
  return {
    resume: () => {
      running = true;
      under = Array.from({ length: count }, (_, worker) => work(worker));
    },
    pause: async () => {
      running = false;
      await Promise.all(under);
      if (wrong) throw wrong;
    },
    progress: () => done,
  };
}
