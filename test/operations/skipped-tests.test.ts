/** The summary of skipped tests at the end of a run, and the order of test files. */
import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, test } from 'vitest';
import { shareFor } from '../ci-share.ts';
import { leftOutInCi, longFiles } from '../long-files.ts';
import { ROOT } from '../world/checkout.ts';
import { longestFirst } from '../world/runner/longest-first.ts';
import { reasonsIn } from '../world/runner/skipped-tests.ts';

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

test('CI leaves out long files on a slow machine only, at most half of them, and others at another commit', () => {
  expect([1, 3.8, 4.2].map(shareFor)).toEqual([1, 1, 1]);
  expect(shareFor(6)).toBeGreaterThan(0.5);
  expect(shareFor(6)).toBeLessThan(0.7);
  expect([12, 100].map(shareFor)).toEqual([0.4, 0.4]);
  const [one, other] = ['c0ffee', 'facade'].map((commit) => leftOutInCi(0.5, commit));
  expect(leftOutInCi(0.5, 'c0ffee')).toEqual(one);
  expect(one!.length).toBeGreaterThan(longFiles().length / 4);
  expect(one!.length).toBeLessThan((longFiles().length * 3) / 4);
  expect(other!.some((file) => !one!.includes(file))).toBe(true);
  expect(leftOutInCi(1, 'c0ffee')).toEqual([]);
});
