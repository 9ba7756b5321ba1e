/**
 * What the last attempt of a test begins with. The attempts before it leave an organisation, a page, a clock or a fault that its steps do not
 * expect, so that a retry on them would fail whatever the first failure was.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type RunnerTask, type RunnerTestSuite, TestRunner } from 'vitest';
import { afterFile } from './after-file.ts';

const repeating = new AsyncLocalStorage<true>();

/** Whether the hooks of `repeatSetup` run. What they create is for the tests that follow, too, though vitest runs them as part of one test. */
export const isRepeatingSetup = (): boolean => repeating.getStore() ?? false;

/**
 * Runs the `beforeAll` hooks of a test again, those of its file first. What they return runs after the file. The first one that can run only once, such
 * as one that creates a folder with a fixed name, ends it: the test then begins with what there is.
 */
export function repeatSetup({ suite, file }: Pick<RunnerTask, 'suite' | 'file'>): Promise<void> {
  const suites: RunnerTestSuite[] = [];
  for (let next = suite; next && next !== file; next = next.suite) suites.unshift(next);
  const hooks = [file, ...suites].flatMap((each) =>
    TestRunner.getSuiteHooks(each).beforeAll.map((hook) => () => hook(each)),
  );
  return repeating.run(true, async () => {
    for (const hook of hooks)
      try {
        const clean: unknown = await hook();
        if (typeof clean === 'function') afterFile(() => clean());
      } catch {
        return;
      }
  });
}
