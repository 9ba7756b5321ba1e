/** Kills a broker at random instants while it works, and checks the invariants after each kill. */
import type { BrokerProcess } from '../world/broker-process.ts';
import type { Invariants } from './invariants.ts';
import { pause, type Scene, type Work, withLog } from './scene.ts';

/** The kill happens at random within this time of the work's beginning. */
const MAX_WORK_MS = 500;
/** Share of kills that happen during the start of a broker, which recovers what the last one left. */
const IN_START = 0.15;
const MAX_START_MS = 400;
/** Timeout for a moment that does not occur. */
const MOMENT_MS = 3_000;
const GOES_ON_WITHIN_MS = 60_000;

/** Waits until it serves. Throws its error output when it does not. */
export async function serving(child: BrokerProcess): Promise<BrokerProcess> {
  if ((await child.serve()) === undefined) throw new Error(`a broker starts after kill -9: ${child.output().stderr}`);
  return child;
}

/** Kills the process. Throws when it had ended by itself before. */
export async function kill(child: BrokerProcess): Promise<void> {
  child.signal('SIGKILL');
  const { code, signal } = await child.ended;
  if (signal !== 'SIGKILL') throw new Error(`ended by itself with ${code}: ${child.output().stderr}`);
}

/** Kills brokers `cuts` times. `cut` numbers each in errors. */
export async function cutWork(
  { scene, work }: { scene: Scene; work: Work },
  invariants: Invariants,
  cuts: number,
): Promise<void> {
  const { random, ledger, spawn } = scene;
  let next = spawn();
  const take = () => {
    const taken = next;
    next = spawn();
    return taken;
  };
  let current = await serving(take());
  let served = Date.now();
  for (let cut = 0; cut < cuts; cut++) {
    try {
      work.resume();
      if (cut % 2 === 0 && work.moment) await Promise.race([work.moment(), pause(MOMENT_MS)]);
      await pause(random() * (work.longestMs ?? MAX_WORK_MS));
      await kill(current);
      await work.pause();
      await work.afterKill?.();
      ledger.cuts++;
      if (random() < IN_START && cut < cuts - 1) {
        const doomed = take();
        void doomed.serve();
        await pause(random() * MAX_START_MS);
        await kill(doomed);
        await work.afterKill?.();
        ledger.cuts++;
        ledger.find('kills during the start of a broker');
        cut++;
      }
      const began = performance.now();
      current = await serving(take());
      ledger.most('longest start, ms', performance.now() - began);
      served = Date.now();
      await invariants.check();
      await work.check?.(served);
    } catch (error) {
      throw withLog(scene, cut + 1, error);
    }
  }
  const before = work.progress();
  const began = performance.now();
  work.resume();
  while (work.progress() === before) {
    if (performance.now() - began > GOES_ON_WITHIN_MS)
      throw withLog(scene, cuts, new Error(`the work does not go on after the last cut: ${work.lately?.() ?? ''}`));
    await pause(20);
  }
  await work.pause();
  await invariants.checkAll();
  await work.check?.(served);
  ledger.find('operations', work.progress());
  next.signal('SIGKILL');
  current.signal('SIGTERM');
  const { code } = await current.ended;
  if (code !== 0) throw new Error(`stops by itself: ${current.output().stderr}`);
}
