/** A memory that may fail: calls go on without it, and the person is told once. */
import type { Repeats } from '../tools/repeats.ts';

/** `first`, and `second` from when `first` throws. `tell` gets the error, once. */
export function tolerantRepeats(first: Repeats, second: Repeats, tell: (error: Error) => void): Repeats {
  let used = first;
  const guarded =
    <A extends unknown[], T>(pick: (repeats: Repeats) => (...words: A) => T) =>
    async (...words: A): Promise<Awaited<T>> => {
      try {
        return await pick(used)(...words);
      } catch (error) {
        if (used === second) throw error;
        used = second;
        tell(error as Error);
        return await pick(second)(...words);
      }
    };
  return {
    begin: guarded((repeats) => repeats.begin),
    find: guarded((repeats) => repeats.find),
    held: guarded((repeats) => repeats.held),
    end: guarded((repeats) => repeats.end),
    endApproval: guarded((repeats) => repeats.endApproval),
  };
}
