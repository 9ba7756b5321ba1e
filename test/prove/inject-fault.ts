/** Makes something fail while a broker works, repairs it, and checks that the broker recovers by itself and all invariants hold. */
import type { BrokerProcess } from '../world/broker-process.ts';
import type { Invariants } from './invariants.ts';
import { kill, serving } from './kill-broker.ts';
import { pause, type Scene, type Work, withLog } from './scene.ts';

/** Makes it fail, and returns a function that repairs it. */
export type Breaking = () => Promise<() => Promise<void>>;

const WORKS_FIRST_MS = 1_000;
const STOPS_WITHIN_MS = 20_000;
const BACK_WITHIN_MS = 30_000;
/** Longer than the timeout of any probe. */
const MAX_ANSWER_MS = 3_000;

/**
 * Makes it fail once, for `lastsMs`. `isTold`: /readyz must report it within 10 s. The same process keeps serving, and works again within 30 s of
 * the repair; with `stopsFirst` it is stopped before the repair, and the next process works.
 */
export async function breakWork(
  { scene, work }: { scene: Scene; work: Work },
  invariants: Invariants,
  {
    breaking,
    lastsMs,
    isTold,
    stopsFirst,
  }: { breaking: Breaking; lastsMs: number; isTold: boolean; stopsFirst: boolean },
): Promise<void> {
  const { ledger, spawn, baseUrl } = scene;
  let child = await serving(spawn());
  try {
    work.resume();
    await pause(WORKS_FIRST_MS);
    const repair = await breaking();
    const began = performance.now();
    let told = false;
    while (performance.now() - began < lastsMs || (isTold && !told && performance.now() - began < 10_000)) {
      const asked = performance.now();
      for (const path of ['/livez', '/readyz']) {
        const { status } = await fetch(baseUrl + path, { signal: AbortSignal.timeout(BACK_WITHIN_MS) });
        if (path === '/livez' && status !== 200) throw new Error(`/livez answers ${status} while it is broken`);
        if (path === '/readyz' && status === 503) told = true;
        const took = performance.now() - asked;
        ledger.most(`longest answer of ${path} meanwhile, ms`, took);
        if (took > MAX_ANSWER_MS) throw new Error(`${path} took ${Math.round(took)} ms while it is broken`);
      }
      await pause(100);
    }
    ledger.check('/livez and /readyz answer within 3 s during the fault');
    if (stopsFirst) {
      await work.pause();
      await stopped(child);
      scene.reader.release();
      await repair();
      child = await serving(spawn());
      work.resume();
    } else await repair();
    if (isTold) {
      if (!told) throw new Error('/readyz answers 200 though nothing can be stored');
      ledger.check('/readyz answers 503 while nothing can be stored');
    }
    ledger.cuts++;
    const mended = performance.now();
    const before = work.progress();
    while (work.progress() < before + 5) {
      if (performance.now() - mended > BACK_WITHIN_MS) throw new Error('calls do not succeed again within 30 s');
      await pause(20);
    }
    ledger.most('longest until calls succeeded again, ms', performance.now() - mended);
    ledger.check(`calls succeed again${stopsFirst ? ' after the next start' : ', without a restart'}`);
    await work.pause();
    await invariants.checkAll();
    await kill(child);
    // Everything written meanwhile is complete: another process starts on it.
    const next = await serving(spawn());
    await invariants.check();
    next.signal('SIGTERM');
    await next.ended;
  } catch (error) {
    throw withLog(scene, 1, error);
  }
}

/** Stops the process with SIGTERM, which must work although it cannot write. */
async function stopped(child: BrokerProcess): Promise<void> {
  child.signal('SIGTERM');
  const { signal } = await Promise.race([
    child.ended,
    pause(STOPS_WITHIN_MS).then(() => {
      throw new Error(`it does not stop within ${STOPS_WITHIN_MS} ms of SIGTERM while it is broken`);
    }),
  ]);
  if (signal !== null) throw new Error(`ended by ${signal}: ${child.output().stderr}`);
}
