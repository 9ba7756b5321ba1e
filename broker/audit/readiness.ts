/** Readiness: the store is writable, the clock is right, and the process is not stopping. */
import type { Broker } from '../broker.ts';
import { readBuild } from '../build.ts';
import { withTimeout } from '../runtime/waits.ts';
import { heartbeat } from '../store/instances.ts';
import type { Recorder } from './recorder.ts';

export type Readiness = {
  /** Writes this process's heartbeat. Rejects when the store cannot take it. */
  beat(): Promise<void>;
  /** Reasons for not being ready, for the operator; empty when ready. Resolves within a second. */
  problems(): Promise<string[]>;
  /** Marks the process as stopping. */
  drain(): void;
};

/** Maximum age of a successful write, so that unauthenticated probes do not each cause one. */
const FRESH_MS = 1_000;
/** Timeout, because probes give up after a second or two. */
const ANSWER_MS = 800;

export function makeReadiness(
  broker: Pick<Broker, 'instanceId' | 'clock' | 'storeClock' | 'metrics' | 'store' | 'storeOutage'>,
  recorder: Pick<Recorder, 'isFailing'>,
): Readiness {
  const { store, storeClock, storeOutage, instanceId, clock, metrics } = broker;
  const { version } = readBuild();
  let writtenAt = Number.NEGATIVE_INFINITY;
  let writing: Promise<void> | undefined;
  let draining = false;

  const write = async (): Promise<void> => {
    try {
      await heartbeat(store.db, instanceId, clock(), version);
    } catch (error) {
      storeOutage.failed(error);
      throw error;
    }
    writtenAt = performance.now();
    metrics.beat();
    storeOutage.worked();
  };
  // At most one pending heartbeat, in case the store hangs.
  const beatOnce = (): Promise<void> => {
    writing ??= write().finally(() => {
      writing = undefined;
    });
    return writing;
  };
  const isFresh = (): boolean => performance.now() - writtenAt < FRESH_MS;

  /** Undefined: the store is writable. */
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
      // No more heartbeats while stopping.
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
