/**
 * The order of test files in CI: known long ones first, the longest at the beginning, so that a run does not end with one worker on a long file while
 * the others are idle. Vitest itself knows durations only from an earlier run in the same checkout, and otherwise starts with the largest file.
 */
import { join } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { longFiles } from '../../long-files.ts';
import { ROOT } from '../root.ts';

/** Returns the files of `long` in its order, then the others unchanged. `long`: paths from the root of the checkout. */
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
