/** Runs `agent-broker run` for an agent of a real broker, with real commands. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestAgent } from '../world/agent.ts';
import { BIN, COMPILE_CACHE } from '../world/checkout.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };
export type Started = {
  child: ChildProcess;
  ended: Promise<Ended>;
  /** Resolves with the output so far once it matches; rejects when the process ends before. */
  written(pattern: RegExp): Promise<string>;
};

/** Writes the agent's profile to a file, and returns its path. */
export function profileOf(agent: TestAgent, url = agent.baseUrl): string {
  const file = join(newFolder(), 'profile.json');
  const content = {
    url,
    agent_id: agent.agentId,
    owner_id: agent.ownerId,
    private_key: agent.keys.privateKey.export({ format: 'pem', type: 'pkcs8' }),
  };
  writeFileSync(file, JSON.stringify(content), { mode: 0o600 });
  return file;
}

/** Starts `agent-broker run <words>`. `env`: its whole environment, except PATH, HOME and the compile cache. */
export function startRun(
  profile: string,
  words: readonly string[],
  env: Record<string, string> = {},
  cwd = newFolder(),
): Started {
  const child = spawn(process.execPath, [BIN, 'run', '--profile', profile, ...words], {
    cwd,
    env: { PATH: process.env.PATH ?? '', HOME: newFolder(), NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  const watchers = new Set<() => void>();
  child.stdout?.on('data', (chunk) => {
    stdout += chunk;
    for (const look of watchers) look();
  });
  child.stderr?.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<Ended>((done) =>
    child.on('close', (code, signal) => done({ code, signal, stdout, stderr })),
  );
  afterFile(() => {
    // `agent-broker run` passes the signal on to its command.
    child.kill('SIGTERM');
    return ended;
  });
  const written = (pattern: RegExp) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        if (!pattern.test(stdout)) return;
        watchers.delete(look);
        resolve(stdout);
      };
      watchers.add(look);
      look();
      void ended.then(() => reject(new Error(`it ended before: ${stdout}${stderr}`)));
    });
  return { child, ended, written };
}

/** Runs `agent-broker run <words>` to its end. */
export const run = (...given: Parameters<typeof startRun>): Promise<Ended> => startRun(...given).ended;

export type ProcessEnviron = { pid: number; name: string; environ: string };

/** Returns the current environments of a process, first, and of all its descendants, as any program of the same user can read them. */
export function treeEnvirons(pid: number): ProcessEnviron[] {
  const table = execFileSync('ps', ['-eo', 'pid=,ppid=,comm='], { encoding: 'utf8' })
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line))
    .filter((found) => found !== null)
    .map(([, own, parent, name = '']) => ({ pid: Number(own), parent: Number(parent), name }));
  const tree = table.filter((one) => one.pid === pid);
  for (const { pid: above } of tree) tree.push(...table.filter(({ parent }) => parent === above));
  return tree.flatMap(({ pid, name }) => {
    try {
      return [{ pid, name, environ: readFileSync(`/proc/${pid}/environ`, 'utf8') }];
    } catch {
      // The process has ended meanwhile.
      return [];
    }
  });
}

/** Returns the arguments that run shell lines as the command. */
export const sh = (lines: string): string[] => ['--', 'sh', '-c', lines];
/** Returns the arguments that run a Node program as the command. */
export const js = (program: string): string[] => ['--', process.execPath, '--input-type=module', '-e', program];
