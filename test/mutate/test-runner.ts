/**
 * A process that runs tests again and again, for mutate.ts: starting Vitest and migrating a store for each fault takes longer than most tests. A message
 * says which test files run, and which source file has changed since; the answer is the result.
 */
import { resolve } from 'node:path';
import { createVitest, type Reporter } from 'vitest/node';

export type Run = { tests: string[]; changed: string[] };
/** `durations` are in ms, by path of the test file. `failed` is the first file with a failed test. */
export type Result = { failed: string | undefined; durations: [file: string, ms: number][] };

let cancelled: Promise<void> | undefined;

/** Ends a run at its first failure. Not by `bail`, with which a worker asks for that without waiting, so that the next run may be ended instead. */
const endAtFailure: Reporter = {
  onTestCaseResult: (test) => {
    if (test.result().state === 'failed') cancelled ??= vitest.cancelCurrentRun('test-failure');
  },
};

const root = process.cwd();
const vitest = await createVitest(
  'test',
  { root, watch: true, reporters: [endAtFailure] },
  { server: { watch: null } },
);
await vitest.standalone();

process.on('message', async ({ tests, changed }: Run) => {
  for (const file of changed) vitest.invalidateFile(resolve(root, file));
  const specifications = await vitest.getRelevantTestSpecifications(tests);
  const { testModules, unhandledErrors } = await vitest.rerunTestSpecifications(specifications);
  await cancelled;
  cancelled = undefined;
  const failed = testModules.find((module) => module.state() === 'failed')?.relativeModuleId;
  const durations = testModules.map((module): [string, number] => [
    module.relativeModuleId,
    module.diagnostic().duration,
  ]);
  process.send!({
    failed: failed ?? (unhandledErrors.length > 0 ? 'an error outside of tests' : undefined),
    durations,
  });
});
process.once('disconnect', () => vitest.exit());
