/**
 * One clock for all processes on a store. On PostgreSQL it is the server's time, read at each heartbeat. SQLite has no clock: there it is this
 * machine's time, checked against the newest heartbeat and against elapsed (monotonic) time. All expiry uses this clock, so that a process whose own
 * clock is wrong neither expires nor deletes what others still need.
 */
import { uptime } from 'node:os';
import type { Log } from './log/log.ts';
import type { Instant } from './policy/facts.ts';
import type { Store } from './store/store.ts';
import { findNewestHeartbeat, postgresTime, storeNewestHeartbeat } from './store/store-time.ts';

export type StoreClock = {
  /** Milliseconds since the epoch, by the store's clock. */
  now(): Instant;
  /** Compares the clocks. Called at each heartbeat; rejects when the store does not answer. */
  check(): Promise<void>;
  /** Milliseconds by which this machine's clock was ahead of the store's at the last comparison. */
  offsetMs(): number;
  /** Why the time is in doubt, as text for the log; undefined when it is not. While it is in doubt, nothing is expired or deleted. */
  problem(): string | undefined;
};

/** The clock is too far off for the broker to start. */
class ClockRefused extends Error {}

/** Clocks that differ by more than this count as wrong. */
const MAX_CLOCK_DIFFERENCE_MS = 30_000;
/** A process whose clock is off by more does not start; a larger step while it runs is not followed. */
const REFUSED_MS = 300_000;
/** A larger difference between wall and monotonic time means that the clock was set, or that the machine slept. */
const STEP_MS = 1_000;

/** The same instant on each of the clocks. `uptime`: since the machine started, sleep included. */
type Anchor = { at: Instant; wall: number; monotonic: number; uptime: number };

const anchored = (at: Instant): Anchor => ({
  at,
  wall: Date.now(),
  monotonic: performance.now(),
  uptime: uptime() * 1000,
});

/** A clock that is correct by definition and never compared, for tests. */
export const givenClock = (now: () => Instant): StoreClock => ({
  now,
  check: async () => {},
  offsetMs: () => 0,
  problem: () => undefined,
});

/**
 * Starts the clock of a store that is migrated. Throws ClockRefused when this machine's clock is more than 5 minutes off; on SQLite, when it is that
 * far behind the newest heartbeat, unless `accept` overrides the check.
 */
export async function startStoreClock(
  store: Store,
  { log, accept = false }: { log: Log; accept?: boolean },
): Promise<StoreClock> {
  let anchor: Anchor;
  let offsetMs = 0;
  let problem: string | undefined;

  const report = (found: string | undefined): void => {
    if (found !== undefined && problem === undefined)
      log.error(`${found}; nothing is expired or deleted until the clocks agree`);
    if (found === undefined && problem !== undefined) log.info('the clocks agree again');
    problem = found;
  };

  const readPostgres = async (): Promise<number> => {
    const asked = performance.now();
    const time = await postgresTime(store.db);
    const halfWay = (performance.now() - asked) / 2;
    anchor = anchored(time + halfWay);
    const off = anchor.wall - anchor.at;
    offsetMs = off;
    report(
      Math.abs(off) > MAX_CLOCK_DIFFERENCE_MS + halfWay
        ? `the clock of this machine is ${formatDifference(off)} the clock of PostgreSQL`
        : undefined,
    );
    return off;
  };

  const readMachine = async (): Promise<void> => {
    const present = anchored(0);
    const elapsed = present.uptime - anchor.uptime;
    const expected = anchor.at + elapsed;
    const off = present.wall - expected;
    offsetMs = off;
    // Slightly behind: runs at half speed until the machine has caught up, and never before the newest heartbeat.
    const followed = off >= 0 ? present.wall : Math.max(present.wall, anchor.at + elapsed / 2);
    anchor = { ...present, at: Math.abs(off) > REFUSED_MS ? expected : followed };
    report(
      off > REFUSED_MS || off < -MAX_CLOCK_DIFFERENCE_MS
        ? `the clock of this machine was set: it is ${formatDifference(off)} the elapsed time`
        : undefined,
    );
    await storeNewestHeartbeat(store.db, Math.trunc(anchor.at));
  };

  if (store.dialect === 'postgres') {
    const off = await readPostgres();
    if (Math.abs(off) > REFUSED_MS)
      throw new ClockRefused(
        `The clock of this machine is ${formatDifference(off)} the clock of PostgreSQL, so nothing was started. Set them (NTP), then start again.`,
      );
  } else {
    const beat = accept ? undefined : await findNewestHeartbeat(store.db);
    const behind = (beat ?? 0) - Date.now();
    if (behind > REFUSED_MS)
      throw new ClockRefused(
        `The clock of this machine is ${formatDifference(-behind)} the newest heartbeat in the store, so nothing was started. Set it, then start again. If it is right, and was wrong before, start once with --accept-clock.`,
      );
    anchor = anchored(Math.max(beat ?? 0, Date.now()));
    await readMachine();
  }

  return {
    now: () => {
      const elapsed = performance.now() - anchor.monotonic;
      // The clock was set, or the machine slept: only the machine's uptime distinguishes the two.
      if (Math.abs(Date.now() - anchor.wall - elapsed) > STEP_MS)
        anchor = anchored(anchor.at + uptime() * 1000 - anchor.uptime);
      else return Math.trunc(anchor.at + elapsed);
      return Math.trunc(anchor.at);
    },
    check: async () => {
      if (store.dialect === 'postgres') await readPostgres();
      else await readMachine();
    },
    offsetMs: () => offsetMs,
    problem: () => problem,
  };
}

/** Returns the difference in words, such as `2 h ahead of` or `4 min behind`. */
function formatDifference(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  const length =
    seconds >= 7200
      ? `${Math.round(seconds / 3600)} h`
      : seconds >= 120
        ? `${Math.round(seconds / 60)} min`
        : `${Math.round(seconds)} s`;
  return `${length} ${ms < 0 ? 'behind' : 'ahead of'}`;
}
