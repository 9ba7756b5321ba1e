/**
 * Reports at the end of a run, in one block, the tests that failed at first and passed at a retry, which CI does twice: an unreported race would
 * stay.
 */
import type { Reporter, TestModule } from 'vitest/node';

type Tried = {
  /** Relative to the checkout. */
  file: string;
  fullName: string;
  state: string;
  /** In order; `messages`: of thrown errors. */
  attempts: readonly { state: string; messages: readonly string[] }[];
};

/** Limit of characters of a reason. */
const MAX_SHOWN = 1_000;

/** Returns a line for each test that passed at a retry: its file, its name, and why it failed at first. */
export function secondAttemptsIn(tests: Iterable<Tried>): string[] {
  return [...tests].flatMap(({ file, fullName, state, attempts }) => {
    const failed = attempts.find((attempt) => attempt.state === 'failed');
    if (state !== 'passed' || !failed) return [];
    // Only the first paragraph: the rest is a diff of two values, or advice. For a property test it includes the seed and the counterexample.
    const [reason = ''] = (failed.messages[0] ?? '').split('\n\n');
    return [`${file} > ${fullName}: ${reason.replaceAll('\n', ' ').slice(0, MAX_SHOWN)}`];
  });
}

export class SecondAttempts implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const lines = secondAttemptsIn(
      modules.flatMap((module) =>
        [...module.children.allTests()].map((test) => ({
          file: module.relativeModuleId,
          fullName: test.fullName,
          state: test.result().state,
          attempts: test.attempts().map((attempt) => ({
            state: attempt.state,
            messages: (attempt.errors ?? []).map(({ message }) => message),
          })),
        })),
      ),
    );
    if (lines.length === 0) return;
    console.log(
      ['', ` PASSED ONLY AT A RETRY (${lines.length}):`, ...lines.map((line) => `   ${line}`), ''].join('\n'),
    );
  }
}
