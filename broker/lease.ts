/** Keeps a lease for work that only one process on a store does at a time. Another process takes over when the lease expires. */
import { performance } from 'node:perf_hooks';
import type { Broker } from './broker.ts';
import { watchOutage } from './outage.ts';
import { leaseEnd, releaseLease, renewLease, takeLease } from './store/leases.ts';

/** How long the lease of a process that died blocks the others: a replacement has to notify owners within two seconds of being ready. */
const LEASE_MS = 2_000;
const RENEW_MS = 800;
/** Subtracted from the end of a lease, so that work begun just before the end can finish. */
const SPARE_MS = 400;
/** Margin after the end of another process's lease before this process tries to take it. */
const AFTER_END_MS = 10;

export type KeptLease = {
  /** The fencing token while this process holds the lease; undefined when another process holds it or may hold it. */
  fence(): number | undefined;
  /** To be called when a transaction found that another process holds the lease. */
  lose(): void;
  /** Stops renewing, and releases the lease. */
  stop(): Promise<void>;
};

/**
 * Takes the lease as soon as possible and renews it until stopped. `gained` is called each time the lease was taken. A SQLite store is opened by one
 * process only, so any earlier holder is gone, and no other process can take the lease away.
 */
export function keepLease(
  {
    store,
    clock,
    log,
    instanceId,
    storeOutage,
  }: Pick<Broker, 'store' | 'clock' | 'log' | 'instanceId' | 'storeOutage'>,
  name: string,
  gained: () => void,
): KeptLease {
  const { db } = store;
  const isAlone = store.notices === undefined;
  let held: { fence: number; end: number } | undefined;
  let isFirst = true;
  /** An end that is too far ahead for any current lease, and since when it was seen, by performance.now(). */
  let beyond: { end: number; since: number } | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<void> = Promise.resolve();
  const outage = watchOutage(log, {
    failed: 'a lease cannot be acquired or renewed; retrying',
    worked: 'the lease can be acquired or renewed again',
    about: { lease: name },
    level: 'warn',
  });

  const isHeld = () => held !== undefined && performance.now() < held.end;

  /**
   * Returns the end of a stale lease: one that a process with a fast clock set, and that did not change for the duration of a lease. A live holder
   * changes the end at each renewal.
   */
  const staleEnd = (end: number | undefined, left: number): number | undefined => {
    if (isAlone || end === undefined || left <= 2 * LEASE_MS) {
      beyond = undefined;
      return undefined;
    }
    if (beyond?.end !== end) beyond = { end, since: performance.now() };
    return performance.now() - beyond.since > LEASE_MS ? end : undefined;
  };

  /** Takes or renews the lease. Returns after how many milliseconds to run again. */
  const step = async (): Promise<number> => {
    // Computed before the statement runs, so that the end in the store is never earlier.
    const end = isAlone ? Number.POSITIVE_INFINITY : performance.now() + LEASE_MS - SPARE_MS;
    const now = clock();
    const until = isAlone ? Number.MAX_SAFE_INTEGER : now + LEASE_MS;
    if (held) {
      if (isAlone) return RENEW_MS;
      if (await renewLease(db, { name, fence: held.fence }, until)) held.end = end;
      else held = undefined;
      return RENEW_MS;
    }
    const isFree = isAlone && isFirst;
    isFirst = false;
    // Read without a lock first: taking the lease locks its row, which all other replicas poll.
    const leased = isFree ? undefined : await leaseEnd(db, name);
    const left = (leased ?? now) - now;
    const stale = staleEnd(leased, left);
    // Does not poll at each heartbeat: the lease is released before its end only when its holder stops.
    if (left > 0 && stale === undefined) return Math.min(left + AFTER_END_MS, LEASE_MS);
    const fence = await takeLease(db, { name, holder: instanceId, now, until, isFree, stale });
    if (fence === undefined) return AFTER_END_MS;
    held = { fence, end };
    gained();
    return RENEW_MS;
  };

  const keep = () => {
    turn = step()
      .then((next) => {
        outage.worked();
        return next;
      })
      .catch((error) => {
        // An outage of the store is logged elsewhere.
        if (!storeOutage.isLasting()) outage.failed(error);
        return RENEW_MS;
      })
      .then((next) => {
        if (!stopped) timer = setTimeout(keep, next);
      });
  };
  keep();

  return {
    fence: () => (isHeld() ? held?.fence : undefined),
    lose: () => {
      held = undefined;
    },
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await turn;
      clearTimeout(timer);
      if (held) await releaseLease(db, { name, fence: held.fence });
      held = undefined;
    },
  };
}
