/** The command `npm run prove` itself: its options, the remaining work, and its report. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../world/root.ts';
import { PARTS } from './parts.ts';
import { possible, readOptions, todoOf } from './prove.ts';
import { type Line, reportOf } from './report.ts';

const line = (different: Partial<Line>): Line => ({
  part: 'calls',
  store: 'sqlite',
  seed: 1,
  cuts: 8,
  checked: [['a receipt verifies', 20]],
  found: [
    ['operations', 5],
    ['longest start, ms', 100],
  ],
  ms: 1_000,
  at: '2026-11-22T12:00:00.000Z',
  commit: '0123456789ab',
  ...different,
});
const MACHINE = { commit: '0123456789ab', node: 'v24', cores: 2, cpu: 'a', linux: '6', postgres: '15' };

test('every part has a test file', () => {
  expect(PARTS.filter(({ file }) => !existsSync(join(ROOT, file)))).toEqual([]);
});

test.each(['test/fuzz/models.test.ts', 'test/fuzz/inputs.test.ts'])('everything that %s tries is a part', (file) => {
  const tried = readFileSync(join(ROOT, file), 'utf8').match(/(?<=')(?:model|fuzz)-[\w-]+(?=':)/g);
  expect(tried?.toSorted()).toEqual(
    PARTS.filter((part) => part.file === file)
      .map(({ name }) => name)
      .toSorted(),
  );
});

test('invalid options are rejected with a readable error', () => {
  expect(() => readOptions(['--cuts', 'many'])).toThrow('--cuts: must be a whole number');
  expect(() => readOptions(['--part', 'nothing'])).toThrow('--part: there is no part nothing.');
  expect(() => readOptions(['--store', 'mysql'])).toThrow('--store: mysql is not a store');
  expect(() => readOptions(['--seconds', '-1'])).toThrow('--seconds');
  expect(readOptions(['--part', 'calls,pushes', '--store', 'sqlite']).parts.map(({ name }) => name)).toEqual([
    'calls',
    'pushes',
  ]);
});

test('parts that only root can run are reported as skipped, not as passed', () => {
  const asked = readOptions(['--part', 'disk-full,folder-read-only,slow-disk', '--store', 'sqlite']);
  const { options, leftOut } = possible(asked, false);
  expect(leftOut).toEqual(['disk-full', 'folder-read-only']);
  expect(options.parts.map(({ name }) => name)).toEqual(['slow-disk']);
  expect(possible(asked, true)).toEqual({ options: asked, leftOut: [] });
});

test('an interrupted run continues: passed parts are done, failed parts are repeated', () => {
  const options = { ...readOptions(['--part', 'calls,streams', '--store', 'sqlite']), cuts: 40 };
  const left = (...done: Line[]) => todoOf(options, done).map(({ part, cuts }) => [part.name, cuts]);
  expect(left()).toEqual([
    ['calls', 20],
    ['streams', 20],
  ]);
  expect(left(line({}), line({ part: 'streams', cuts: 20 }))).toEqual([['calls', 12]]);
  expect(left(line({ error: 'no' }), line({ part: 'streams', cuts: 20 }))).toEqual([['calls', 20]]);
});

test('models and fuzzers run once, for the requested time, and again after a failure', () => {
  const options = readOptions(['--part', 'fuzz-endpoints,model-approvals', '--store', 'sqlite']);
  const left = (...done: Line[]) => todoOf(options, done).map(({ part }) => part.name);
  const tried = line({ part: 'fuzz-endpoints', cuts: 40_000, ms: 2_000, seed: 7 });
  expect(left(tried)).toEqual(['model-approvals']);
  expect(left({ ...tried, error: 'no' })).toEqual(['model-approvals', 'fuzz-endpoints']);
  expect(reportOf([tried], MACHINE)).toContain('| 40000, 20000 per second | – |');
  expect(reportOf([{ ...tried, cuts: 12, error: 'no' }], MACHINE)).toContain(
    '`PROVE_PART=fuzz-endpoints PROVE_SEED=7 PROVE_RUN=12 TEST_STORE=sqlite npx vitest run test/fuzz/inputs.test.ts`',
  );
});

test('the report sums counts, takes the maximum of times, and has the command that reproduces a failure', () => {
  const failed = line({ store: 'postgres', cuts: 3, seed: 7, error: 'after cut 4: a call was sent twice' });
  const report = reportOf([line({}), line({ found: [['longest start, ms', 70]] }), failed], MACHINE);
  expect(report).toContain('**19 kills (SIGKILL): 16 on SQLite, 3 on PostgreSQL.\n1 of 3 runs failed.**');
  expect(report).toContain('| a receipt verifies | 40 |');
  expect(report).toContain('| calls | sqlite | longest start, ms: 100; operations: 5 |');
  expect(report).toContain(
    'after cut 4: a call was sent twice | `PROVE_PART=calls PROVE_CUTS=4 PROVE_SEED=7 TEST_STORE=postgres npx vitest run test/prove/kills.test.ts` |',
  );
});
