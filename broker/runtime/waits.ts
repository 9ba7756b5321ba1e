/** Bounded waiting: pauses, timeouts, and retries until a timeout. */

/** After a longer wait, in milliseconds, facts loaded before it are loaded again. */
export const LONG_WAIT_MS = 100;

/** A first attempt that fails sooner had a broken connection. A store that does not respond takes 5 s and more to fail. */
const CONNECTION_FAILURE_MS = 4_000;
const RETRY_PAUSE_MS = 200;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns the result of `work`, or `late` when it takes longer than `ms`. The work continues in the background. */
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
 * Retries `work` against a store that may be briefly unavailable: until it succeeds, `timeoutMs` have passed, or its error `isFinal`, which
 * is then thrown. `isFirst`: whether this is the first attempt.
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
      // A broken connection is retried once, however short the timeout is; an unresponsive store is not waited for twice.
      const timeout = first ? Math.max(timeoutMs, CONNECTION_FAILURE_MS) : timeoutMs;
      if (isFinal(error) || performance.now() - began >= timeout) throw error;
      await pause(RETRY_PAUSE_MS);
    }
  }
}

/**
 * Waits at most `ms` until a slot is taken. Returns the function that releases it, or undefined when that took too long: the slot is then released as
 * soon as it is taken.
 */
export async function takenWithin(taken: Promise<() => void>, ms: number): Promise<(() => void) | undefined> {
  const release = await withTimeout<() => void, undefined>(taken, ms);
  if (!release) void taken.then((late) => late());
  return release;
}
