/**
 * `npm run mutate -- broker/policy/limit.ts`: runs tests on faulty copies of a file, one small fault at a time, and lists the faults that no test
 * notices. Everything runs in a copy of the checkout, which is removed afterwards.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { createVitest } from 'vitest/node';
import { wholeNumber } from '../../bench/bench-options.ts';
import { writePackage } from '../../build.ts';
import { ROOT } from '../world/root.ts';
import { type Mutant, mutantsOf, withMutant } from './mutants.ts';
import type { Result, Run } from './test-runner.ts';

const USAGE = `Usage: npm run mutate -- FILE... [--tests PATH]... [--lines FROM-TO] [--seconds N]

  FILE           source files, such as broker/policy/limit.ts
  --tests PATH   the tests that should notice: files or folders of test/ (the folder of the same name, such as test/policy)
  --lines A-B    only faults on these lines
  --seconds N    starts no further run after this time (900)

Exits with 1 if a fault was not noticed. The programs that tests start, and the pages of the console, are built without faults.
`;

/** The quickest tests, and those that noticed a fault last, run before the others: together they take at most this share of the time of all. */
const QUICK_SHARE = 0.2;

let runner: ChildProcess | undefined;

/** Runs tests until the first failure. A fault may lead into an endless loop, so they are ended, with all processes they started, after `limit` ms. */
async function runTests(copy: string, run: Run, limit: number): Promise<Result> {
  const child = runner ?? startRunner(copy);
  const timer = setTimeout(endRunner, limit);
  const result = await new Promise<Result>((done) => {
    child.once('exit', () => {
      runner = undefined;
      done({ failed: 'no result in time', durations: [] });
    });
    child.once('message', done);
    child.send(run);
  });
  clearTimeout(timer);
  child.removeAllListeners();
  return result;
}

function startRunner(copy: string): ChildProcess {
  const program = join(copy, 'test/mutate/test-runner.ts');
  runner = fork(program, { cwd: copy, detached: true, stdio: 'ignore', env: { ...process.env, CI: '' } });
  return runner;
}

function endRunner(): void {
  if (runner?.pid && runner.exitCode === null) process.kill(-runner.pid, 'SIGKILL');
  runner = undefined;
}

/** Copies what Git tracks or would add. */
async function copyCheckout(copy: string): Promise<void> {
  const list = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '-z'], { cwd: ROOT, encoding: 'utf8' });
  for (const file of list.split('\0').filter((name) => name && existsSync(join(ROOT, name))))
    cpSync(join(ROOT, file), join(copy, file));
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  await writePackage(join(copy, 'programs'), { 'child-broker': 'test/world/child-broker.ts' });
}

function readOptions() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      tests: { type: 'string', multiple: true },
      lines: { type: 'string', default: '1-1000000' },
      seconds: { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  const [, first = '', last = first] = /^(\d+)(?:-(\d+))?$/.exec(values.lines) ?? [];
  if (first === '') throw new Error('--lines: write one line, or the first and the last: 20-60.');
  const wrong = positionals.find((file) => !existsSync(join(ROOT, file)));
  if (wrong) throw new Error(`There is no file ${wrong}. Paths are relative to the checkout.`);
  const folders = [...new Set(positionals.map((file) => dirname(file).replace(/^broker\b/, 'test')))];
  const tests = values.tests ?? folders;
  if (tests.includes('test')) throw new Error('Name the tests with --tests: there are none for this folder alone.');
  const missing = tests.find((test) => !existsSync(join(ROOT, test)));
  if (missing) throw new Error(`There are no tests in ${missing}. Name some with --tests.`);
  const seconds = wholeNumber('--seconds', values.seconds, 900, 100_000);
  return { files: positionals, tests, lines: [Number(first), Number(last)], seconds, help: values.help };
}

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').slice(0, 100);
const describe = ({ original, replacement }: Mutant): string => `${oneLine(original)}  →  ${oneLine(replacement)}`;

/** Test files that import one of the source files, directly or not. */
async function relatedTests(copy: string, files: readonly string[], tests: readonly string[]): Promise<string[]> {
  const related = files.map((file) => join(copy, file));
  const vitest = await createVitest('test', { root: copy, watch: false, related });
  const specifications = await vitest.getRelevantTestSpecifications([...tests]);
  await vitest.close();
  return specifications.map(({ moduleId }) => relative(realpathSync(copy), moduleId));
}

/** Splits test files, in this order, where the durations (ms) of the first ones reach the share of quick ones. */
function inStages(order: readonly string[], durations: ReadonlyMap<string, number>): string[][] {
  const durationOf = (file: string) => durations.get(file) ?? 0;
  const all = order.reduce((sum, file) => sum + durationOf(file), 0);
  let sum = 0;
  const rest = order.findIndex((file, index) => {
    sum += durationOf(file);
    return index > 0 && sum > all * QUICK_SHARE;
  });
  return rest < 0 ? [[...order]] : [order.slice(0, rest), order.slice(rest)];
}

async function main(): Promise<number> {
  const { files, tests, lines, seconds, help } = readOptions();
  if (help || files.length === 0) {
    process.stdout.write(USAGE);
    return help ? 0 : 2;
  }
  const copy = mkdtempSync(join(tmpdir(), 'agent-broker-mutants-'));
  process.on('exit', () => {
    endRunner();
    rmSync(copy, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));
  await copyCheckout(copy);
  process.env.AGENT_BROKER_TEST_PROGRAMS = join(copy, 'programs');
  // Otherwise the long files among the tests (test/long-files.json) would be left out of every run.
  process.env.ALL_TESTS = '1';
  let order = await relatedTests(copy, files, tests);
  if (order.length === 0) throw new Error(`No test in ${tests.join(', ')} imports ${files.join(', ')}.`);
  const begun = performance.now();
  const { failed, durations: measured } = await runTests(copy, { tests: order, changed: [] }, seconds * 1000);
  if (failed) throw new Error(`The tests fail without a fault (${failed}).`);
  const limit = 3 * (performance.now() - begun) + 10_000;
  const durations = new Map(measured);
  order.sort((one, other) => (durations.get(one) ?? 0) - (durations.get(other) ?? 0));
  const mutants = files.flatMap((file) => {
    const text = readFileSync(join(copy, file), 'utf8');
    const wanted = mutantsOf(file, text).filter(({ line }) => line >= lines[0]! && line <= lines[1]!);
    return wanted.map((mutant) => ({ file, text, mutant }));
  });
  let noticed = 0;
  let unnoticed = 0;
  for (const { file, text, mutant } of mutants) {
    if (performance.now() - begun > seconds * 1000) break;
    writeFileSync(join(copy, file), withMutant(text, mutant));
    let by: string | undefined;
    for (const stage of inStages(order, durations))
      by ??= (await runTests(copy, { tests: stage, changed: files }, limit)).failed;
    writeFileSync(join(copy, file), text);
    if (by) noticed += 1;
    else {
      unnoticed += 1;
      process.stdout.write(`${file}:${mutant.line}  ${describe(mutant)}\n`);
    }
    if (by && order.includes(by)) order = [by, ...order.filter((name) => name !== by)];
  }
  const left = mutants.length - noticed - unnoticed;
  process.stdout.write(`${mutants.length} faults: ${noticed} noticed, ${unnoticed} not noticed, ${left} not tried.\n`);
  return unnoticed > 0 ? 1 : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 2;
}
runner?.disconnect();
