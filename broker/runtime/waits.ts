/** Waiting that has an end: pauses, timeouts, and retries until a timeout. */

/** After a longer wait, in milliseconds, what was known before it is read again. */
export const LONG_WAIT_MS = 100;

/** A first try that failed sooner met a connection that broke. A store that does not answer takes 5 s and more to say so. */
const BROKE_WITHIN_MS = 4_000;
const RETRY_PAUSE_MS = 200;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** What `work` comes to, or `late` when that takes longer than `ms`. The work goes on without whoever waited. */
export async function withTimeout<Value, Late>(
  work: Promise<Value>,
  ms: number,
  late?: Late,
): Promise<Value | Late | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<Late | undefined>((resolve) => {
    timer = setTimeout(resolve, ms, late);
  });
  try {
    return await Promise.race([work, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Retries `work` against a store that may be away for a moment: until it succeeds, `timeoutMs` are over, or what it throws
 * `isFinal`: that comes out. `isFirst`: it was not done before.
 */
export async function retryUntil<Value>(
  work: (isFirst: boolean) => Promise<Value>,
  timeoutMs: number,
  isFinal: (error: unknown) => boolean,
): Promise<Value> {
  const began = performance.now();
  for (let first = true; ; first = false) {
    try {
      return await work(first);
    } catch (error) {
      // A connection that broke is retried once, however short the timeout is. Nobody waits twice for a silent store.
      const timeout = first ? Math.max(timeoutMs, BROKE_WITHIN_MS) : timeoutMs;
      if (isFinal(error) || performance.now() - began >= timeout) throw error;
      await pause(RETRY_PAUSE_MS);
    }
  }
}
