/**
 * The order in which CI runs the test files: those that are known to take long first, the longest at the beginning, so that a run does not end with one
 * of them on one worker while the others have nothing left. Vitest itself knows durations only from a run before on the same checkout, and else takes
 * the largest file first.
 */
import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longFiles } from '../long-files.ts';
import { ROOT } from './root.ts';

/** Those of `long` in its order, then the others as they were. `long`: paths from the root of the checkout. */
export function longestFirst<T extends { moduleId: string }>(files: readonly T[], long: readonly string[]): T[] {
  const places = new Map(long.map((file, place) => [join(ROOT, file), place]));
  const placeOf = ({ moduleId }: T) => places.get(moduleId) ?? places.size;
  return files.toSorted((one, other) => placeOf(one) - placeOf(other));
}

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return longestFirst(await super.sort(files), longFiles());
  }
}
