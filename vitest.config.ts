import { configDefaults, defineConfig } from 'vitest/config';
import { commitHere, leftOutInCi, longFiles } from './test/long-files.ts';
import { LongestFirst } from './test/world/runner/longest-first.ts';
import { SecondAttempts } from './test/world/runner/second-attempts.ts';
import { SkippedTests } from './test/world/runner/skipped-tests.ts';

/** Pictures are for people to look at, and the client programs are 2 GB: they run where the variable is set, or by their own command (CONTRIBUTING.md). */
const ON_DEMAND = [
  ...(process.env.PICTURES ? [] : ['test/console/pictures.test.ts', 'test/console/pictures.many.test.ts']),
  ...(process.env.CLIENT_PROGRAMS ? [] : ['test/client-programs/**']),
];
const isNamed = process.argv.some((word) => word.startsWith('test/'));
/** What takes long: CI runs it, as far as it has time, and whoever asks. */
function leftOut(): string[] {
  if (isNamed || process.env.ALL_TESTS) return [];
  if (!process.env.CI) return longFiles();
  const share = Number(process.env.LONG_FILES_SHARE ?? 1);
  return share < 1 ? leftOutInCi(share, commitHere()) : [];
}
const long = leftOut();

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Nothing is mutable at module level, so files share what they import: a fifth of the time went into importing.
    isolate: false,
    globalSetup: ['test/world/runner/build-programs.ts', 'test/world/runner/migrated-database.ts'],
    setupFiles: ['test/world/runner/each-file.ts'],
    reporters: ['default', new SkippedTests(long), new SecondAttempts()],
    // A rare race is listed at the end of the run, to be fixed, and stops nobody's landing. The last attempt begins with its setup (test/world/runner/each-file.ts).
    retry: process.env.CI ? 2 : 0,
    ...(process.env.CI && { sequence: { sequencer: LongestFirst } }),
    exclude: [...configDefaults.exclude, ...ON_DEMAND, ...long],
    // CI shares its machine with others: a test that hangs is told late there, and none fails for being slow.
    testTimeout: process.env.CI ? 180_000 : 20_000,
    hookTimeout: process.env.CI ? 180_000 : 30_000,
    // In CI what is polled costs more than it gains to see it sooner.
    expect: { poll: process.env.CI ? { timeout: 30_000, interval: 100 } : { timeout: 10_000 } },
    // Test files start real servers of their own and wait a lot. Four of them fill two cores beside whatever else a developer does; in CI four left a third
    // of both idle. Each worker more imports everything once more, five seconds of processor time (VITEST_MAX_WORKERS says another number).
    maxWorkers: process.env.CI ? 5 : 4,
  },
});
