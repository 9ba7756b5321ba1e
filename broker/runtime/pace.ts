/** Runs long work in slices, so that other requests are served in between. */
import { setImmediate } from 'node:timers/promises';

/** Not noticeable for other requests, and much longer than a turn of the event loop costs. */
const SLICE_MS = 4;

/**
 * Returns a function to await between pieces of work. It yields to the event loop when a slice is used up, and on its first call, because
 * the current turn may already be long from other work.
 */
export function pacer(): () => Promise<void> {
  let since = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - since < SLICE_MS) return;
    await setImmediate();
    since = performance.now();
  };
}

/** Runs a generator in slices. */
export async function inSlices<Result>(work: Generator<void, Result>, rest = pacer()): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await rest();
  }
}

/** Runs a generator in one piece. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
