/** Runs the command line as users do: in real processes, ended with the test file. */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { join } from 'node:path';
import { BIN, COMPILE_CACHE, PROGRAMS, ROOT } from './checkout.ts';
import type { HostedCommand, HostedOutcome } from './commands-program.ts';
import { afterFile } from './runner/after-file.ts';

export type Ran = { code: number | null; stdout: string; stderr: string };
type Setting = { cwd: string; env?: Record<string, string>; input?: string };

function start(words: readonly string[], { cwd, env }: Setting): ChildProcess {
  return spawn(process.execPath, [BIN, ...words], {
    cwd,
    env: { PATH: process.env.PATH!, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Runs a command to its end. `env`: its whole environment, beside PATH and the compile cache; `input`: its standard input, empty by default. */
export function runCommand(words: readonly string[], setting: Setting): Promise<Ran> {
  const child = start(words, setting);
  let [stdout, stderr] = ['', ''];
  child.stdout!.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr!.on('data', (chunk) => {
    stderr += chunk;
  });
  child.stdin!.on('error', () => {});
  child.stdin!.end(setting.input ?? '');
  return new Promise((done) => child.on('close', (code) => done({ code, stdout, stderr })));
}

/**
 * Runs commands like `runCommand`, but one after the other in one process, which loads the command line once and ends with the test file: for tests
 * of a command's effects, output and exit code. Use `runCommand` for anything about the process: signals, terminals, memory, concurrent commands, and
 * reading standard input by its number, as `git-credential` and `verify receipt` do. To be called once per file.
 */
export function commandHost(): (words: readonly string[], setting: Setting) => Promise<Ran> {
  let host: ChildProcess | undefined;
  const waiting: { done(outcome: HostedOutcome): void; failed(error: Error): void }[] = [];
  const started = () => {
    const child = fork(join(ROOT, 'test/world/commands-program.ts'), [join(PROGRAMS, 'dist/cli.js')], {
      env: { PATH: process.env.PATH!, NODE_COMPILE_CACHE: COMPILE_CACHE },
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    child.on('message', (outcome: HostedOutcome) => waiting.shift()!.done(outcome));
    const ended = new Promise<void>((done) =>
      child.on('exit', (code) => {
        host = undefined;
        for (const { failed } of waiting.splice(0)) failed(new Error(`the process of commands ended with ${code}`));
        done();
      }),
    );
    afterFile(() => {
      if (child.connected) child.disconnect();
      return ended;
    });
    return child;
  };
  return (words, { cwd, env, input = '' }) => {
    host ??= started();
    const command: HostedCommand = { words, cwd, env: { PATH: process.env.PATH!, ...env }, input };
    host.send(command);
    return new Promise((done, failed) => waiting.push({ done, failed }));
  };
}

export type Served = {
  url: string;
  /** The output up to `greeted`. */
  greeting: string;
  /** Stops it as an operator does. Returns its exit code. */
  stop(): Promise<number | null>;
};

/** Starts `agent-broker serve` on a free port, and waits until it has printed `greeted`. */
export async function startServe(
  words: readonly string[],
  { env, ...setting }: Setting,
  greeted = 'agent-broker demo',
): Promise<Served> {
  const own = { PORT: '0', DRAIN_SECONDS: '0', LOG_LEVEL: 'warn' };
  const server = start(['serve', ...words], { ...setting, env: { ...own, ...env } });
  server.stderr!.pipe(process.stderr, { end: false });
  const ended = new Promise<number | null>((done) => server.once('close', done));
  const stop = () => {
    server.kill('SIGTERM');
    return ended;
  };
  afterFile(stop);
  let greeting = '';
  await new Promise<void>((ready, reject) => {
    server.stdout!.on('data', (chunk) => {
      greeting += chunk;
      if (greeting.includes(greeted)) ready();
    });
    server.once('exit', (code) => reject(new Error(`serve ended with ${code}`)));
  });
  return { url: /running at (\S+)/.exec(greeting)![1]!, greeting, stop };
}
