/** Whether this process can take calls now: it writes, its clock is right, and it is not stopping. */
import type { Broker } from '../broker.ts';
import { withTimeout } from '../runtime/waits.ts';
import { heartbeat } from '../store/instances.ts';
import type { Recorder } from './recorder.ts';

export type Readiness = {
  /** Writes this process's heartbeat. Rejects when the store cannot take it. */
  beat(): Promise<void>;
  /** Why it takes no calls, in words for the operator; empty when it does. Resolves within a second. */
  problems(): Promise<string[]>;
  /** From now on it is stopping. */
  drain(): void;
};

/** A write of this age says that the store can be written: strangers may ask, and each question must not cost a write. */
const FRESH_MS = 1_000;
/** Probes give up after a second or two. */
const ANSWER_MS = 800;

export function makeReadiness(broker: Broker, recorder: Pick<Recorder, 'isFailing'>): Readiness {
  const { store, storeClock, storeOutage, instanceId, clock } = broker;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> | undefined;
  let draining = false;

  const write = async (): Promise<void> => {
    try {
      await heartbeat(store.db, instanceId, clock());
    } catch (error) {
      storeOutage.failed(error);
      throw error;
    }
    writtenAt = performance.now();
    storeOutage.worked();
  };
  // A store that hangs is asked by one at a time.
  const beatOnce = (): Promise<void> => {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  };
  const isFresh = (): boolean => performance.now() - writtenAt < FRESH_MS;

  /** Undefined: it can be written. */
  const storeProblem = async (): Promise<string | undefined> => {
    if (isFresh()) return undefined;
    const written = beatOnce().then(
      () => undefined,
      (error: Error) => `the store cannot be written: ${error.message}`,
    );
    return await withTimeout(written, ANSWER_MS, 'the store does not answer');
  };

  return {
    beat: beatOnce,
    problems: async () => {
      // Its heartbeat ends with it: nothing is written any more.
      if (draining) return ['the broker is stopping'];
      const store = await storeProblem();
      const audit = recorder.isFailing() ? 'audit rows cannot be stored' : undefined;
      return [store, audit, storeClock.problem()].filter((found) => found !== undefined);
    },
    drain: () => {
      draining = true;
    },
  };
}
