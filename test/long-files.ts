/**
 * Which test files `npm test` leaves out unless it runs in CI, with ALL_TESTS=1 or for named files: those that take long, so that the
 * rest takes two to three minutes. CI begins with them, in the order of the list (`world/longest-first.ts`). `long-files.json` is written from a whole run:
 *
 *     ALL_TESTS=1 npx vitest run --reporter=json --outputFile=report.json
 *     node test/long-files.ts report.json
 */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

const LIST = join(import.meta.dirname, 'long-files.json');
/** In CI, beside four others on two processors. */
const LONG_MS = 5_000;

type Report = { testResults: { name: string; startTime: number; endTime: number }[] };

/** Paths from the root of the checkout, the one that takes longest first. */
export const longFiles = (): string[] => JSON.parse(readFileSync(LIST, 'utf8'));

/**
 * Returns the long files that a CI run leaves out. `share`: 0 to 1, of those that it has time for (`ci-share.ts`). Each commit draws others, and one
 * commit always the same.
 */
export function leftOutInCi(share: number, commit: string): string[] {
  const drawn = (file: string) => hash('sha256', `${commit} ${file}`, 'buffer').readUInt32BE() / 2 ** 32;
  return longFiles().filter((file) => drawn(file) >= share);
}

/** Returns the commit of the checkout. Throws outside of git. */
export const commitHere = (): string =>
  execFileSync('git', ['rev-parse', 'HEAD'], { cwd: import.meta.dirname, encoding: 'utf8' }).trim();

if (process.argv[1] === import.meta.filename) {
  const [, , path] = process.argv;
  if (path === undefined) throw new Error('Name the report of a whole run: node test/long-files.ts report.json');
  const { testResults }: Report = JSON.parse(readFileSync(path, 'utf8'));
  const root = join(import.meta.dirname, '..');
  const took = ({ startTime, endTime }: Report['testResults'][number]) => endTime - startTime;
  const long = testResults.filter((file) => took(file) > LONG_MS).sort((one, other) => took(other) - took(one));
  const names = long.map(({ name }) => relative(root, name));
  writeFileSync(LIST, `${JSON.stringify(names, null, 2)}\n`);
  console.log(`${names.length} of ${testResults.length} files take more than ${LONG_MS / 1000} s`);
}
