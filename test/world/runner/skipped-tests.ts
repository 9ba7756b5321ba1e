/** Reports at the end of a run, in one block, which tests were skipped and how to run them. In CI none may be, but long files on a slow machine. */
import type { Reporter, TestModule } from 'vitest/node';

type Named = { fullName: string; state: string };

/**
 * Returns the reasons for skipping, with the number of tests for each. Taken from test names: `(skipped: …)` of a skipped test or suite, `is skipped:
 * …` of one that only reports it, `(PostgreSQL skipped: …)` of one that ran on SQLite only.
 */
export function reasonsIn(tests: Iterable<Named>): Map<string, number> {
  const reasons = new Map<string, number>();
  for (const { fullName, state } of tests) {
    const [, marked, reason = ''] = /(\(PostgreSQL |\(|\bis )skipped: (.*?)\)?(?= > |$)/.exec(fullName) ?? [];
    if (marked === undefined || (marked === '(' ? state !== 'skipped' : marked === 'is ' && state === 'skipped'))
      continue;
    const why = marked === '(PostgreSQL ' ? `PostgreSQL: ${reason}; they run on SQLite only` : reason;
    reasons.set(why, (reasons.get(why) ?? 0) + 1);
  }
  return reasons;
}

export class SkippedTests implements Reporter {
  readonly #longFiles: readonly string[];

  /** `longFiles`: those that the configuration excluded. */
  constructor(longFiles: readonly string[]) {
    this.#longFiles = longFiles;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) =>
      [...module.children.allTests()].map((test) => ({ fullName: test.fullName, state: test.result().state })),
    );
    const reasons = reasonsIn(tests);
    const lines = [...reasons].map(([reason, count]) => `${count} tests: ${reason}`);
    if (this.#longFiles.length > 0)
      lines.push(`${this.#longFiles.length} files that take long (test/long-files.json): ALL_TESTS=1 npm test`);
    if (lines.length === 0) return;
    console.log(['', ' NOT ALL TESTS RAN. Left out:', ...lines.map((line) => `   ${line}`), ''].join('\n'));
    if (process.env.CI && reasons.size > 0) {
      console.error('In CI no test may be skipped.');
      process.exitCode = 1;
    }
  }
}
