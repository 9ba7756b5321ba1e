/** The summary of skipped tests at the end of a run, and the order of test files. */
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { longFiles } from '../long-files.ts';
import { ROOT } from '../world/checkout.ts';
import { longestFirst } from '../world/longest-first.ts';
import { reasonsIn } from '../world/skipped-tests.ts';

test('skipped tests are counted by reason, and tests that ran are not', () => {
  const skipped = 'the console (skipped: Chromium is not installed (on Debian: apt-get install chromium))';
  const reasons = reasonsIn([
    { fullName: `${skipped} > opens`, state: 'skipped' },
    { fullName: `${skipped} > inbox > shows what waits`, state: 'skipped' },
    { fullName: 'a full disk > ST-02 is skipped: no small file system can be mounted here', state: 'passed' },
    { fullName: 'a full disk > ST-02 is skipped: no small file system can be mounted here', state: 'skipped' },
    { fullName: 'calls on sqlite (PostgreSQL skipped: TEST_DATABASE_URL is not set) > one', state: 'passed' },
    { fullName: 'calls on sqlite > only on the other store', state: 'skipped' },
    { fullName: 'a row (skipped: by the batch before it) is written', state: 'passed' },
  ]);
  expect([...reasons]).toEqual([
    ['Chromium is not installed (on Debian: apt-get install chromium)', 2],
    ['no small file system can be mounted here', 1],
    ['PostgreSQL: TEST_DATABASE_URL is not set; they run on SQLite only', 1],
  ]);
});

test('the test files in the list of long files exist', () => {
  const files = longFiles();
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test('CI starts with the long files, in the order of the list; the others follow in their order', () => {
  const [second, first] = longFiles().slice(0, 2).toReversed();
  const files = ['test/z.test.ts', second!, 'test/a.test.ts', first!].map((file) => ({ moduleId: join(ROOT, file) }));
  expect(longestFirst(files, longFiles()).map(({ moduleId }) => relative(ROOT, moduleId))).toEqual([
    first,
    second,
    'test/z.test.ts',
    'test/a.test.ts',
  ]);
});
