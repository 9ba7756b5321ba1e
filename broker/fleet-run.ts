/**
 * The fleet run begins with the first process on a store and ends when no process is alive any more. Passkey challenges are bound to it
 * (approvals/passkeys/challenge.ts), so a full restart invalidates them and a rolling restart does not.
 *
 * After a crash the dead processes are still listed. Whether one of them is alive shows at its next heartbeat. A starting process does not wait for
 * that: until then challenges are issued in the existing run, and only operations that depend on the result wait.
 */

import type { Log } from './log/log.ts';
import type { Instant } from './policy/facts.ts';
import { findRun, type Run, registerInstance, settleRun } from './store/instances.ts';
import type { Store } from './store/store.ts';

/** How often a starting process checks the other processes per heartbeat interval. */
const CHECKS_PER_HEARTBEAT = 20;
/** Checks without a heartbeat of any member, after which no other process counts as alive: one and a half intervals, since heartbeats may be late. */
const SILENT_CHECKS = 30;

export type FleetRun = {
  /** When this process started, by the store's clock. Anything issued later is valid whichever run this turns out to be. */
  startedAt: Instant;
  /** Reads the current run, the same for all processes on the store. */
  read(): Promise<Run>;
  /**
   * Resolves when it is known whether the run that this process found continues: within one and a half heartbeat intervals. Rejects when this process
   * stops before.
   */
  settled(): Promise<void>;
  /** Starts the checks that resolve `settled`. `beatMs`: the interval of the heartbeats. */
  settle(beatMs: number): { stop(): Promise<void> };
};

/** Registers this process, which starts now, among those on the store. */
export async function joinFleet(
  store: Store,
  log: Log,
  { instanceId, release }: { instanceId: string; release: string },
  now: Instant,
): Promise<FleetRun> {
  // On SQLite the lock of the data folder guarantees that no other process is running.
  if (store.dialect === 'sqlite')
    return {
      startedAt: now,
      read: async () => ({ id: instanceId }),
      settled: async () => {},
      settle: () => ({ stop: async () => {} }),
    };
  const { db } = store;
  const instance = { id: instanceId, startedAt: now, release };
  const found = await registerInstance(db, instance);
  const settled = Promise.withResolvers<void>();
  // Avoids an unhandled rejection when this process stops and nothing waits for the promise.
  settled.promise.catch(() => {});
  if (found.member) settled.resolve();

  const settle = (beatMs: number) => {
    let checks = 0;
    let failed = false;
    let running: Promise<void> | undefined;
    const check = async (): Promise<void> => {
      try {
        if (!(await settleRun(db, instance, found.seen, { begin: checks >= SILENT_CHECKS }))) {
          checks++;
          return;
        }
        clearInterval(timer);
        settled.resolve();
      } catch (error) {
        if (!failed) log.warn({ err: error }, 'could not check for other broker processes; retrying');
        failed = true;
      }
    };
    const timer = setInterval(() => {
      running ??= check().finally(() => {
        running = undefined;
      });
    }, beatMs / CHECKS_PER_HEARTBEAT);
    if (found.member) clearInterval(timer);
    return {
      stop: async () => {
        clearInterval(timer);
        await running;
        settled.reject(new Error('the broker is stopping'));
      },
    };
  };
  return { startedAt: now, read: () => findRun(db), settled: () => settled.promise, settle };
}
