/** Long work in slices, so that whoever else is asking is answered in between. */
import { setImmediate } from 'node:timers/promises';

/** Well under what anybody notices, and far more than a turn of the event loop costs. */
const SLICE_MS = 4;

/**
 * Answers a function to await between pieces of work: it lets others run when a slice is over, and the first time, because the turn
 * may be long already: with what came before this work, or with the slice of another pacer.
 */
export function pacer(): () => Promise<void> {
  let since = Number.NEGATIVE_INFINITY;
  return async () => {
    if (performance.now() - since < SLICE_MS) return;
    await setImmediate();
    since = performance.now();
  };
}

/** Does work that yields between its pieces, in slices. */
export async function inSlices<Result>(work: Generator<void, Result>, rest = pacer()): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await rest();
  }
}

/** Does work that yields between its pieces, in one piece. */
export function atOnce<Result>(work: Generator<void, Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}
