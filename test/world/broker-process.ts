/** Controls `child-broker.ts`: a broker that a test can kill. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { CHILD_BROKER, COMPILE_CACHE } from './checkout.ts';
import { afterFile } from './runner/after-file.ts';

export type BrokerProcess = {
  pid: number;
  /** Starts serving. Returns its address; undefined when the process ended instead. */
  serve(): Promise<string | undefined>;
  signal(name: NodeJS.Signals): void;
  /** Resolves when the process has ended. */
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** All output so far. */
  output(): { stdout: string; stderr: string };
};

/**
 * Starts a process with this environment only, beside PATH and the compile cache; it serves when `serve` is called. It ends with the test file at the latest. `flags`
 * are Node's; `program`: of another build.
 */
export function spawnBroker(
  environment: Readonly<Record<string, string>>,
  flags: readonly string[] = [],
  program = CHILD_BROKER,
): BrokerProcess {
  const child = spawn(process.execPath, [...flags, program], {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const written = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    written.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    written.stderr += text;
  });
  // Ignores the error when the process is killed before it has read the line.
  child.stdin.on('error', () => {});
  afterFile(() => child.kill('SIGKILL'));
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  return {
    pid: child.pid!,
    serve: async () => {
      child.stdin.write('serve\n');
      await Promise.race([waitFor(child, () => /^serving /m.test(written.stdout)), ended]);
      return /^serving (.*)$/m.exec(written.stdout)?.[1];
    },
    signal: (name) => child.kill(name),
    ended,
    output: () => ({ ...written }),
  };
}

function waitFor(child: ChildProcess, done: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!done()) return;
      child.stdout!.off('data', look);
      resolve();
    };
    child.stdout!.on('data', look);
    look();
  });
}
