/**
 * One clock for all processes on a store: the store's. On PostgreSQL its own time, read at each heartbeat; on SQLite, which
 * has none, the time of this machine, held against the newest heartbeat and against the time that really went by. Whatever
 * expires goes by it, so that a process whose own clock is wrong neither expires nor deletes what others still need.
 */
import { uptime } from 'node:os';
import type { Log } from './log/log.ts';
import type { Instant } from './policy/facts.ts';
import type { Store } from './store/store.ts';
import { findNewestBeat, postgresTime, putNewestBeat } from './store/store-time.ts';

export type StoreClock = {
  /** Milliseconds since the epoch, by the store's clock. */
  now(): Instant;
  /** Compares the clocks. To be called at each heartbeat; rejects when the store does not answer. */
  check(): Promise<void>;
  /** Milliseconds by which this machine's clock was ahead of the store's when they were compared last. */
  offsetMs(): number;
  /** Why the time is in doubt, in words; undefined when it is not. While it is, nothing is expired or deleted. */
  problem(): string | undefined;
};

/** The clock is too far off to start with. */
class ClockRefused extends Error {}

/** Clocks that are further apart than this are not the same any more. */
const APART_MS = 30_000;
/** A process that is further off does not start, and a step that is longer is not followed. */
const REFUSED_MS = 300_000;
/** Between two heartbeats: the clock was set, or the machine slept. */
const STEP_MS = 1_000;

/** Moments of one instant on each of the clocks. `uptime`: since the machine started, sleep included. */
type Anchor = { at: Instant; wall: number; monotonic: number; uptime: number };

const anchored = (at: Instant): Anchor => ({
  at,
  wall: Date.now(),
  monotonic: performance.now(),
  uptime: uptime() * 1000,
});

/** A clock that is right by definition, and compared with nothing. */
export const givenClock = (now: () => Instant): StoreClock => ({
  now,
  check: async () => {},
  offsetMs: () => 0,
  problem: () => undefined,
});

/**
 * The clock of a store whose tables are up to date. Throws ClockRefused when this machine's is more than 5 minutes off;
 * on SQLite, when it is that far behind the newest heartbeat, unless `accept` says that it is right.
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
      Math.abs(off) > APART_MS + halfWay
        ? `the clock of this machine is ${apart(off)} the clock of PostgreSQL`
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
    // Behind by little: at half the speed until the machine has caught up, and never before the newest heartbeat.
    const followed = off >= 0 ? present.wall : Math.max(present.wall, anchor.at + elapsed / 2);
    anchor = { ...present, at: Math.abs(off) > REFUSED_MS ? expected : followed };
    report(
      off > REFUSED_MS || off < -APART_MS
        ? `the clock of this machine was set: it is ${apart(off)} the time that has gone by`
        : undefined,
    );
    await putNewestBeat(store.db, Math.trunc(anchor.at));
  };

  if (store.dialect === 'postgres') {
    const off = await readPostgres();
    if (Math.abs(off) > REFUSED_MS)
      throw new ClockRefused(
        `The clock of this machine is ${apart(off)} the clock of PostgreSQL, so nothing was started. Set them (NTP), then start again.`,
      );
  } else {
    const beat = accept ? undefined : await findNewestBeat(store.db);
    const behind = (beat ?? 0) - Date.now();
    if (behind > REFUSED_MS)
      throw new ClockRefused(
        `The clock of this machine is ${apart(-behind)} the newest heartbeat in the store, so nothing was started. Set it, then start again. If it is right, and was wrong before, start once with --accept-clock.`,
      );
    anchor = anchored(Math.max(beat ?? 0, Date.now()));
    await readMachine();
  }

  return {
    now: () => {
      const elapsed = performance.now() - anchor.monotonic;
      // Set, or asleep: only the time since the machine started tells which.
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

/** `2 h ahead of`, `4 min behind`. */
function apart(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  const length =
    seconds >= 7200
      ? `${Math.round(seconds / 3600)} h`
      : seconds >= 120
        ? `${Math.round(seconds / 60)} min`
        : `${Math.round(seconds)} s`;
  return `${length} ${ms < 0 ? 'behind' : 'ahead of'}`;
}
