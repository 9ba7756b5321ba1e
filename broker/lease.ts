/** Keeps a lease while the process runs: work that one process on a store does at a time, taken over when that one is gone. */
import { performance } from 'node:perf_hooks';
import type { Broker } from './broker.ts';
import { watchOutage } from './outage.ts';
import { leaseEnd, releaseLease, renewLease, takeLease } from './store/leases.ts';

/** How long a process that died keeps the work from the others: who starts in its place is to tell owners within two seconds of being ready. */
const LEASE_MS = 2_000;
const RENEW_MS = 800;
/** Of the end of a lease, for what was begun just before it. */
const SPARE_MS = 400;
/** What is asked for at the end of another's lease is asked for after it. */
const AFTER_END_MS = 10;

export type KeptLease = {
  /** The fencing token while this process holds the lease; undefined: another one does, or may. */
  fence(): number | undefined;
  /** It turned out in a transaction that another process holds it. */
  lose(): void;
  /** Gives it back. */
  stop(): Promise<void>;
};

/**
 * Takes the lease as soon as it can and renews it, until stopped. `gained`: called each time that it was taken. An embedded store
 * is opened by one process, so whoever held the lease before is no more, and nobody takes it away.
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
  /** An end that is later than any lease of now can have, and since when it is seen, by performance.now(). */
  let beyond: { end: number; since: number } | undefined;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<void> = Promise.resolve();
  const outage = watchOutage(log, {
    failed: 'a lease cannot be taken or renewed; retrying',
    worked: 'the lease can be taken or renewed again',
    about: { lease: name },
    level: 'warn',
  });

  const isHeld = () => held !== undefined && performance.now() < held.end;

  /**
   * The end of a lease that a clock which was ahead gave it, and that nobody has changed for as long as a lease lasts: whoever holds one changes it each time that
   * they renew it.
   */
  const staleEnd = (end: number | undefined, left: number): number | undefined => {
    if (isAlone || end === undefined || left <= 2 * LEASE_MS) {
      beyond = undefined;
      return undefined;
    }
    if (beyond?.end !== end) beyond = { end, since: performance.now() };
    return performance.now() - beyond.since > LEASE_MS ? end : undefined;
  };

  /** Answers in how many milliseconds there is something to do again. */
  const step = async (): Promise<number> => {
    // Counted from before the statement: the store's end of the lease is later.
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
    // Read first: an attempt to take it locks its row, and all other replicas look again and again.
    const leased = isFree ? undefined : await leaseEnd(db, name);
    const left = (leased ?? now) - now;
    const stale = staleEnd(leased, left);
    // Not at each beat: it is free before its end only when its holder stops.
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
        // That the store is away is in the log already.
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
