/**
 * Counts uses per key within a fixed window, to enforce limits: for this process, or for all processes that share a counter.
 *
 * With a shared counter each process has an allowance per key: uses that it grants from memory before the shared counter knows of them.
 * They are reported in the background, for all keys in one request at a time. Only a use beyond the allowance waits for the shared counter,
 * whose answer is exact; and the allowance shrinks to zero as a key approaches its limit. So no use is refused before the limit is reached,
 * and at most `limit + processes × allowance` are granted within a window. While the shared counter is unavailable, each process counts for
 * itself, from the last known count: a limit is never lifted, and no request waits.
 */
import { performance } from 'node:perf_hooks';

/** Uses of a key that were not reported to the shared counter yet; a negative number takes reported ones back. */
export type Use = { key: string; count: number };
/** `count`: within the window, over all processes. `leftMs`: until the window ends, by the shared counter's clock. */
export type Counted = { count: number; leftMs: number };

/** The counter shared by all processes. */
export type SharedCounter = {
  /** Adds uses, each of a different key. A key without a window begins one of `windowMs`. Resolves to the counts in the same order. */
  add(uses: readonly Use[], windowMs: number): Promise<Counted[]>;
  /** Rejects when the counter is unavailable; absent when that is known in another way. */
  check?(): Promise<void>;
  close(): Promise<void>;
};

/** Notified whether the shared counter is available. */
type Watch = { failed(error: unknown): void; worked(): void };
export type Shared = { counter: SharedCounter; watch: Watch };

/** `left`: uses until the limit, as far as known. `leftMs`: until the window ends. */
export type Taken = { allowed: boolean; left: number; leftMs: number };

export type WindowCounts = {
  /** Counts `count` uses of a key, if `limit` permits all of them; 0 only reads what is left. Never rejects. */
  take(key: string, limit: number, count: number): Taken | Promise<Taken>;
  /** Checks in the background whether the shared counter is available, so that the log shows it before the first use. */
  begin(): void;
  /** Reports pending uses, and closes the shared counter. */
  stop(): Promise<void>;
};

/** Share of a limit that a process may grant per key before the shared counter knows of it. */
export const ALLOWANCE = 0.05;
/** Share of the uses left until the limit; the smaller of both applies. */
const ALLOWANCE_OF_LEFT = 0.1;
/** Longest time until a use is reported. */
const REPORT_INTERVAL_MS = 1_000;
/** Longest wait of a use for the shared counter. */
const MAX_WAIT_MS = 1_000;
const RETRY_MS = 1_000;
/** Keys per report. */
const MAX_KEYS = 500;

/** `at`: ordinal, among the uses that this process was ever asked for, of the last use it asks for. */
type Waiter = { at: number; decide(allowed: boolean): void };

type Count = {
  readonly key: string;
  limit: number;
  /** End of the window, by performance.now(). */
  end: number;
  /** The last count of the shared counter; without one, that of this process. */
  known: number;
  /** Uses of this process, since this entry was created, that are included in `known`. */
  counted: number;
  /** Uses in the report in flight. */
  sent: number;
  /** Uses not reported yet, less those taken back. */
  fresh: number;
  /** Uses of this process that were taken back, because they did not fit together. */
  returned: number;
  waiting: Waiter[];
};

/** `windowMs`: from the first use of a key. Without a shared counter this process counts for itself. */
export function windowCounts(windowMs: number, shared?: Shared): WindowCounts {
  const counts = new Map<string, Count>();
  const unreported = new Set<Count>();
  let underWay: Promise<void> | undefined;
  let isUnavailable = false;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;

  const forget = setInterval(() => {
    const now = performance.now();
    // While a use waits, its entry has to stay: a second one for the key would name it twice in a report, which the shared counter refuses as a whole.
    for (const [key, { end, sent, waiting }] of counts)
      if (end <= now && sent === 0 && waiting.length === 0) counts.delete(key);
  }, windowMs).unref();

  const countOf = (key: string, limit: number): Count => {
    const now = performance.now();
    const found = counts.get(key);
    if (!found) {
      const made = {
        key,
        limit,
        end: now + windowMs,
        known: 0,
        counted: 0,
        sent: 0,
        fresh: 0,
        returned: 0,
        waiting: [],
      };
      counts.set(key, made);
      return made;
    }
    if (found.end <= now && found.waiting.length === 0) {
      found.end = now + windowMs;
      found.known = 0;
      found.fresh = 0;
    }
    return found;
  };

  const answer = (count: Count, allowed: boolean): Taken => ({
    allowed,
    left: Math.max(0, count.limit - count.known - count.sent - count.fresh),
    leftMs: Math.max(0, count.end - performance.now()),
  });

  /** `at`: as in Waiter. Uses of other processes count before all unreported ones. */
  const isWithin = ({ known, counted, returned, limit }: Count, at: number): boolean =>
    known - counted - returned + at <= limit;

  /** `known`: including the uses that were sent. */
  const settle = (count: Count, known: number, waiting: readonly Waiter[]): void => {
    count.known = known;
    count.counted += count.sent;
    count.sent = 0;
    for (const { at, decide } of waiting) decide(isWithin(count, at));
  };

  const report = async ({ counter, watch }: Shared): Promise<void> => {
    const now = performance.now();
    const batch: { count: Count; waiting: readonly Waiter[] }[] = [];
    for (const count of unreported) {
      if (batch.length === MAX_KEYS) break;
      unreported.delete(count);
      const { fresh, end, waiting } = count;
      if ((fresh === 0 || end <= now) && waiting.length === 0) continue;
      batch.push({ count, waiting });
      count.sent = fresh;
      count.fresh = 0;
      count.waiting = [];
    }
    if (batch.length === 0) return;
    try {
      const uses = batch.map(({ count: { key, sent } }) => ({ key, count: sent }));
      const answers = await counter.add(uses, windowMs);
      for (const [index, { count, waiting }] of batch.entries()) {
        const answer = answers[index];
        if (!answer) throw new Error('The shared counter did not return a count for every key.');
        count.end = performance.now() + answer.leftMs;
        settle(count, answer.count, waiting);
      }
      isUnavailable = false;
      watch.worked();
    } catch (error) {
      isUnavailable = true;
      // Not reported again: the counter may have added it despite the error, and must not count it twice.
      for (const { count, waiting } of batch) settle(count, count.known + count.sent, waiting);
      for (const count of unreported) for (const { at, decide } of count.waiting.splice(0)) decide(isWithin(count, at));
      watch.failed(error);
    }
  };

  const isUrgent = (): boolean =>
    unreported.size >= MAX_KEYS || [...unreported].some(({ waiting, fresh }) => waiting.length > 0 || fresh < 0);

  /** One report at a time, so that they take one connection at most. */
  const reportNow = (to: Shared): void => {
    clearTimeout(timer);
    timer = undefined;
    underWay ??= report(to).finally(() => {
      underWay = undefined;
      if (stopped || unreported.size === 0) return;
      if (!isUnavailable && isUrgent()) reportNow(to);
      else reportSoon(to);
    });
  };
  const reportSoon = (to: Shared): void => {
    if (underWay || stopped) return;
    timer ??= setTimeout(() => reportNow(to), isUnavailable ? RETRY_MS : REPORT_INTERVAL_MS).unref();
  };

  const decided = (count: Count, to: Shared, uses: number): Promise<Taken> =>
    new Promise((resolve) => {
      let isDecided = false;
      const patience = setTimeout(() => {
        isUnavailable = true;
        waiter.decide(isWithin(count, waiter.at));
      }, MAX_WAIT_MS);
      const waiter: Waiter = {
        at: count.counted + count.sent + count.fresh + count.returned,
        decide: (allowed) => {
          if (isDecided) return;
          isDecided = true;
          clearTimeout(patience);
          // A single use that is refused leaves nothing for others to use.
          if (!allowed && uses > 1) {
            count.fresh -= uses;
            count.returned += uses;
            unreported.add(count);
          }
          resolve(answer(count, allowed));
        },
      };
      count.waiting.push(waiter);
      reportNow(to);
    });

  return {
    take: (key, limit, uses) => {
      const count = countOf(key, limit);
      count.limit = limit;
      const before = count.known + count.sent + count.fresh;
      if (uses === 0 || before + uses > limit) return answer(count, uses === 0 && before <= limit);
      count.fresh += uses;
      if (!shared) return answer(count, true);
      unreported.add(count);
      const allowance = Math.floor(Math.min(limit * ALLOWANCE, (limit - count.known) * ALLOWANCE_OF_LEFT));
      if (!isUnavailable && count.sent + count.fresh > allowance) return decided(count, shared, uses);
      if (!isUnavailable && count.fresh * 2 >= allowance) reportNow(shared);
      else reportSoon(shared);
      return answer(count, true);
    },
    begin: () => void shared?.counter.check?.().then(shared.watch.worked, shared.watch.failed),
    stop: async () => {
      stopped = true;
      clearInterval(forget);
      clearTimeout(timer);
      await underWay;
      if (shared && !isUnavailable) await report(shared);
      await shared?.counter.close();
    },
  };
}
