/** Output whose reader has closed the pipe, as after `| head -1`, or stopped reading, or that cannot be written. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { constants, existsSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test, vi } from 'vitest';
import { BIN, COMPILE_CACHE } from '../world/checkout.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';

type Output = 'pipe' | 'ignore' | number;

function start(words: readonly string[], cwd: string, stdout: Output = 'pipe', stderr: Output = 'pipe'): ChildProcess {
  const env = {
    PATH: process.env.PATH!,
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    PORT: '0',
    DRAIN_SECONDS: '0',
    LOG_LEVEL: 'debug',
  };
  return spawn(process.execPath, [BIN, ...words], { cwd, env, stdio: ['ignore', stdout, stderr] });
}

const ended = (child: ChildProcess) => new Promise<number | null>((done) => child.once('close', done));

test('a command whose reader closed the pipe exits 0 without an error of Node', async () => {
  const child = start(['completion', 'bash'], newFolder());
  child.stdout!.destroy();
  expect(await Promise.all([ended(child), text(child.stderr!)])).toEqual([0, '']);
});

test.skipIf(!existsSync('/dev/full'))('output that cannot be written fails the command with a reason', async () => {
  const child = start(['completion', 'bash'], newFolder(), openSync('/dev/full', 'w'));
  expect(await Promise.all([ended(child), text(child.stderr!)])).toEqual([
    1,
    expect.stringMatching(/^The output cannot be written: ENOSPC.*\.\n$/),
  ]);
});

test('a broker whose output and log readers closed the pipes keeps serving, and shuts down cleanly', async () => {
  const folder = newFolder();
  const child = start(['serve', '--no-sandbox'], folder);
  child.stdout!.destroy();
  child.stderr!.destroy();
  const end = ended(child);
  afterFile(() => void child.kill('SIGKILL'));
  const file = join(folder, '.agent-broker', 'run', 'broker.json');
  await vi.waitUntil(() => existsSync(file), { timeout: 30_000 });
  const { url } = JSON.parse(readFileSync(file, 'utf8'));
  const asked = await fetch(`${url}/readyz`);
  expect(await asked.json()).toEqual({ status: 'ok' });
  child.kill('SIGTERM');
  expect(await end).toBe(0);
});

test.skipIf(process.platform === 'win32')(
  'a broker whose log reader stopped reading keeps serving, and shuts down cleanly',
  async () => {
    const folder = newFolder();
    const child = start(['serve', '--no-sandbox'], folder, 'ignore', fullPipe(folder));
    const end = new Promise<number | null>((done) => child.once('exit', done));
    afterFile(() => void child.kill('SIGKILL'));
    const file = join(folder, '.agent-broker', 'run', 'broker.json');
    await vi.waitUntil(() => existsSync(file), { timeout: 30_000 });
    const { url } = JSON.parse(readFileSync(file, 'utf8'));
    const asked = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) });
    expect(await asked.json()).toEqual({ status: 'ok' });
    child.kill('SIGTERM');
    expect(await end).toBe(0);
  },
);

/** Returns the write end of a full pipe, whose reader is open and does not read. */
function fullPipe(folder: string): number {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const end = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  expect(() => {
    for (;;) writeSync(end, 'x');
  }).toThrow('EAGAIN');
  return end;
}
