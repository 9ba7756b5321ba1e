/** A reader of the log that stops reading without closing the pipe, as a log collector that hangs. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const DROPPED = 'log lines were dropped because standard error did not accept them';
/** Of 1 KB each: more than a pipe and the queue of 1 MiB hold. */
const LINES = 3_000;

/** Starts a program that has `log`, and `write(count)`, which logs numbered lines. Its standard error is read only when a test does. */
function start(program: string, stderr: 'pipe' | number = 'pipe'): ChildProcess {
  const source = `
    import { makeLog } from './broker/log/log.ts';
    const log = makeLog('debug');
    let n = 0;
    const write = (count) => { for (let i = 0; i < count; i++) log.debug({ n: n++, padding: 'x'.repeat(930) }, 'a line'); };
    ${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', stderr],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

type Line = { level: string; n?: number; dropped?: number; msg: string };
const linesOf = (log: string): Line[] =>
  log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));

/** The program answers each byte of its input, and writes all lines after the first. */
const ANSWERS = `process.stdin.on('data', () => process.stdout.write('answered')).once('data', () => write(${LINES}));
  process.stdin.on('end', () => { log.info('the last line'); process.exit(0); });`;

const ask = async (child: ChildProcess): Promise<void> => {
  const answered = once(child.stdout!, 'data');
  child.stdin!.write('?');
  await answered;
};

test('a reader that stops reading does not block the process; dropped lines are counted once it reads again', async () => {
  const child = start(ANSWERS);
  for (let i = 0; i < 3; i++) await ask(child);

  let log = '';
  const isCounted = new Promise<void>((resolve) => {
    child.stderr!.setEncoding('utf8').on('data', (piece: string) => {
      log += piece;
      if (log.includes(DROPPED)) resolve();
    });
  });
  await isCounted;
  child.stdin!.end();
  expect(await once(child, 'close')).toEqual([0, null]);

  const lines = linesOf(log);
  const kept = lines.filter(({ msg }) => msg === 'a line').map(({ n }) => n);
  expect(kept.length).toBeGreaterThan(1_000);
  expect(kept, 'the first ones, in order').toEqual(kept.map((_, i) => i));
  const rest = lines.slice(kept.length);
  expect(rest, 'the count is after the lines from before the gap').toMatchObject([
    { level: 'error', dropped: LINES - kept.length, msg: DROPPED },
    { level: 'info', msg: 'the last line' },
  ]);
});

test('the process ends although nobody reads its log', async () => {
  const child = start(ANSWERS);
  await ask(child);
  child.stdin!.end();
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('lines in the queue are written at the exit', async () => {
  const child = start(`write(500); log.info('the last line'); process.exit(3);`);
  const log = text(child.stderr!);
  expect(await once(child, 'close')).toEqual([3, null]);
  const lines = linesOf(await log);
  expect([lines.length, lines.at(-1)!.msg]).toEqual([501, 'the last line']);
});

test('an uncaught error is printed after the lines in the queue', async () => {
  const child = start(`write(500); throw new Error('the reason of the crash');`);
  const log = text(child.stderr!);
  expect(await once(child, 'close')).toEqual([1, null]);
  expect(linesOf(await log)).toHaveLength(500);
  expect(await log).toMatch(/"a line"}\n[^{]*Error: the reason of the crash/);
});

test('a log file gets every line', async () => {
  const file = join(newFolder(), 'log');
  const descriptor = openSync(file, 'w');
  const child = start(`write(${LINES}); process.exit(0);`, descriptor);
  closeSync(descriptor);
  expect(await once(child, 'exit')).toEqual([0, null]);
  expect(linesOf(readFileSync(file, 'utf8')).map(({ n }) => n)).toEqual(Array.from({ length: LINES }, (_, i) => i));
});
