/**
 * The run of the fleet: it begins with the first process on a store, and ends when no process is alive any more. Passkey
 * challenges are bound to it (approvals/passkey-challenge.ts), so that a restart invalidates them and a rolling restart
 * does not.
 *
 * After a crash the dead processes are still listed. Whether one of them is alive shows at its next heartbeat, for which a
 * start does not wait: meanwhile challenges are issued in the run that there is, and only what depends on the answer waits.
 */

import type { Log } from './log/log.ts';
import type { Instant } from './policy/facts.ts';
import { findRun, type Run, registerInstance, settleRun } from './store/instances.ts';
import type { Store } from './store/store.ts';

/** How often a starting process looks at the others in the interval of a heartbeat. */
const LOOKS_PER_BEAT = 20;
/** Looks without a heartbeat of a member, after which none is alive: one and a half intervals, as heartbeats may be late. */
const SILENT_LOOKS = 30;

export type FleetRun = {
  /** When this process started, by the store's clock. What was issued later is good whichever run this is. */
  startedAt: Instant;
  /** The run as it is now, and as all processes on the store see it. */
  read(): Promise<Run>;
  /**
   * Resolves when it is known whether the run that this process found goes on: within one and a half intervals of the
   * heartbeat. Rejects when this process stops before.
   */
  settled(): Promise<void>;
  /** Finds that out. `beatMs`: the interval of the heartbeats. */
  settle(beatMs: number): { stop(): Promise<void> };
};

/** Lists this process, which starts now, among those on the store. */
export async function joinFleet(
  store: Store,
  log: Log,
  { instanceId, release }: { instanceId: string; release: string },
  now: Instant,
): Promise<FleetRun> {
  // Embedded, the folder's lock says that nobody else is there.
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
  // Nobody may be waiting for it when this process stops.
  settled.promise.catch(() => {});
  if (found.member) settled.resolve();

  const settle = (beatMs: number) => {
    let looks = 0;
    let failed = false;
    let running: Promise<void> | undefined;
    const look = async (): Promise<void> => {
      try {
        if (!(await settleRun(db, instance, found.seen, { begin: looks >= SILENT_LOOKS }))) {
          looks++;
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
      running ??= look().finally(() => {
        running = undefined;
      });
    }, beatMs / LOOKS_PER_BEAT);
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
