/** Child processes and their figures in /proc (Linux: proc(5)). */

import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { present } from '../broker/runtime/present.ts';

export type Child = { pid: number; process: ChildProcess; stop(): Promise<void> };

/**
 * Starts a script of this folder with additional environment variables, and waits up to 20 s for its first
 * message, which is returned as `said`. The script ends by itself when this process ends.
 */
export async function forkChild(script: string, env: Record<string, string>): Promise<Child & { said: unknown }> {
  const path = new URL(script, import.meta.url);
  const child = fork(path, { env: { ...process.env, ...env }, serialization: 'advanced' });
  const stop = stopper(child);
  const said = await new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`${script} did not start within 20 s.`)), 20_000);
    child.once('message', (message) => {
      clearTimeout(late);
      resolve(message);
    });
    child.once('exit', (code) => {
      clearTimeout(late);
      reject(new Error(`${script} ended with code ${code} before it was ready.`));
    });
  }).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { pid: present(child.pid, 'process'), process: child, said, stop };
}

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** Returns a function that ends the process with `signal`, and with SIGKILL when it still runs after 10 s. It may be called twice. */
export function stopper(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): () => Promise<void> {
  const kill = () => child.kill('SIGKILL');
  running.add(child);
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      running.delete(child);
      resolve();
    });
  });
  return async () => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    child.kill(signal);
    const late = setTimeout(kill, 10_000);
    await gone;
    clearTimeout(late);
  };
}

/** Returns the milliseconds from `startedAt` (of performance.now) to the first 200 of this URL; throws after `mostMs`. */
export async function waitForHealth(url: string, startedAt: number, mostMs: number): Promise<number> {
  for (;;) {
    const healthy = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
    const elapsed = performance.now() - startedAt;
    if (healthy) return elapsed;
    if (elapsed > mostMs) throw new Error(`${url} did not answer 200 within ${mostMs} ms.`);
    await wait(5);
  }
}

/** Returns the CPU seconds of these processes and their descendants, including ended ones. */
export function cpuSeconds(roots: readonly number[]): number {
  let ticks = 0;
  for (const pid of treeOf(roots)) {
    const fields = statOf(pid);
    // utime, stime and, for ended children, cutime and cstime: fields 14 to 17 of proc_pid_stat(5).
    if (fields) for (const at of [11, 12, 13, 14]) ticks += Number(fields[at]);
  }
  // sysconf(_SC_CLK_TCK) is 100 on every Linux that Node runs on.
  return ticks / 100;
}

/** Returns the resident bytes of these processes and their descendants. Shared pages count once for each process. */
export function residentBytes(roots: readonly number[]): number {
  let kilobytes = 0;
  for (const pid of treeOf(roots)) {
    const status = readOrNothing(`/proc/${pid}/status`);
    kilobytes += Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0);
  }
  return kilobytes * 1024;
}

function treeOf(roots: readonly number[]): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(Number(name)) : undefined;
    if (fields) parents.set(Number(name), Number(fields[1]));
  }
  const tree = new Set(roots);
  for (let before = -1; before !== tree.size; ) {
    before = tree.size;
    for (const [pid, parent] of parents) if (tree.has(parent)) tree.add(pid);
  }
  return [...tree];
}

/** Returns the fields of /proc/<pid>/stat from the third (state) on, since the second may contain spaces and brackets. */
function statOf(pid: number): string[] | undefined {
  const text = readOrNothing(`/proc/${pid}/stat`);
  return text === '' ? undefined : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Measures the growth of a process: `end` returns its peak of resident bytes, less the value at the start. */
export function watchMemory(pid: number): { end(): Promise<number> } {
  const before = residentBytes([pid]);
  let most = before;
  const look = () => {
    most = Math.max(most, residentBytes([pid]));
  };
  const timer = setInterval(look, 100);
  return {
    end: async () => {
      clearInterval(timer);
      look();
      return most - before;
    },
  };
}
