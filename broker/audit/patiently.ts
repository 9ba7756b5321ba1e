/** Asking a store again that was away for a moment. */

/** A first try that failed sooner met a connection that broke. A store that does not answer takes 5 s and more to say so. */
const BROKE_WITHIN_MS = 4_000;
const RETRY_PAUSE_MS = 200;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Does `work` again and again until it succeeds, `patienceMs` are over, or what it throws `isHopeless`: that comes out.
 * `isFirst`: it was not done before.
 */
export async function patiently<T>(
  work: (isFirst: boolean) => Promise<T>,
  patienceMs: number,
  isHopeless: (error: unknown) => boolean,
): Promise<T> {
  const began = performance.now();
  for (let first = true; ; first = false) {
    try {
      return await work(first);
    } catch (error) {
      // A connection that broke is gone round once, however short the patience is. Nobody waits twice for a silent store.
      const patience = first ? Math.max(patienceMs, BROKE_WITHIN_MS) : patienceMs;
      if (isHopeless(error) || performance.now() - began >= patience) throw error;
      await pause(RETRY_PAUSE_MS);
    }
  }
}
