/** Best-effort deduplication: if the store fails, calls continue with a fallback, and the person is told once. */
import type { Repeats, RepeatsInMemory } from '../tools/repeats.ts';

/**
 * `first`, with `second` as fallback once `first` throws; until then `second` is kept in sync, so that it has the calls in
 * progress. `tell` is called with the error, once.
 */
export function tolerantRepeats(first: Repeats, second: RepeatsInMemory, tell: (error: Error) => void): Repeats {
  let isBroken = false;
  const guarded =
    <A extends unknown[], T>(
      pick: (repeats: Repeats) => (...words: A) => T,
      follow: (done: Awaited<T>, ...words: A) => unknown,
    ) =>
    async (...words: A): Promise<Awaited<T>> => {
      if (isBroken) return await pick(second)(...words);
      let done: Awaited<T>;
      try {
        done = await pick(first)(...words);
      } catch (error) {
        if (!isBroken) tell(error as Error);
        isBroken = true;
        return await pick(second)(...words);
      }
      await follow(done, ...words);
      return done;
    };
  return {
    begin: guarded(
      (repeats) => repeats.begin,
      (begun, hash) => second.note(hash, begun),
    ),
    find: guarded(
      (repeats) => repeats.find,
      (_found, _hash) => {},
    ),
    held: guarded(
      (repeats) => repeats.held,
      (_, ...words) => second.held(...words),
    ),
    end: guarded(
      (repeats) => repeats.end,
      (_, ...words) => second.end(...words),
    ),
    endApproval: guarded(
      (repeats) => repeats.endApproval,
      (_, ...words) => second.endApproval(...words),
    ),
    drop: guarded(
      (repeats) => repeats.drop,
      (_, ...words) => second.drop(...words),
    ),
  };
}
