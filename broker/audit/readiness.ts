/** Readiness: the store is writable, the clock is right, and the process is not stopping. */
import type { Broker } from '../broker.ts';
import { withTimeout } from '../runtime/waits.ts';
import type { Heartbeat } from './heartbeat.ts';
import type { Recorder } from './recorder.ts';

export type Readiness = {
  /** Resolves within a second with the reasons for not being ready, for the operator; empty when ready. */
  problems(): Promise<string[]>;
  /** Marks the process as stopping. */
  drain(): void;
};

/** Maximum age of a successful write, so that unauthenticated probes do not each cause one. */
const FRESH_MS = 1_000;
/** Timeout, because probes give up after a second or two. */
const ANSWER_MS = 800;

export function makeReadiness(
  { storeClock }: Pick<Broker, 'storeClock'>,
  heartbeat: Heartbeat,
  recorder: Pick<Recorder, 'isFailing'>,
): Readiness {
  let draining = false;

  /** Returns why the store is not writable; undefined when it is. */
  const storeProblem = async (): Promise<string | undefined> => {
    if (heartbeat.ageMs() < FRESH_MS) return undefined;
    const written = heartbeat.beat().then(
      () => undefined,
      (error: Error) => `the store cannot be written: ${error.message}`,
    );
    return await withTimeout(written, ANSWER_MS, 'the store does not answer');
  };

  return {
    problems: async () => {
      // No heartbeats are written while stopping, so the store is not checked.
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
