/** Programs at a real terminal of Linux, by `script` of util-linux, and what of a text could act on one. */
import { execFileSync, spawn } from 'node:child_process';
import { afterFile } from './after-file.ts';
import { BIN, COMPILE_CACHE } from './checkout.ts';
import type { Ran } from './command.ts';

/** Skipped where there is no `script` with these options, and says so; in CI there has to be one. */
export const missingScript = (() => {
  try {
    const version = execFileSync('script', ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return version.includes('util-linux') ? undefined : 'script is not that of util-linux';
  } catch {
    return 'script of util-linux is not installed';
  }
})();
if (missingScript && process.env.CI) throw new Error(missingScript);

type Setting = { cwd: string; env?: Record<string, string>; columns?: number };
export type AtTerminal = {
  /** Resolves with all that was printed, when what came since the last `shows` has `text`. Rejects when it ends without. */
  shows(text: string | RegExp): Promise<string>;
  type(text: string): void;
  /** `stdout`: all that came to the terminal. */
  ended: Promise<Ran>;
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts a command of ours at a terminal. `env`: all of its environment but PATH, TERM and the compile cache. */
export const atTerminal = (words: readonly string[], { env, ...setting }: Setting): AtTerminal =>
  shellAtTerminal(`exec ${[process.execPath, BIN, ...words].map(quoted).join(' ')}`, {
    ...setting,
    env: { PATH: process.env.PATH!, TERM: 'xterm-256color', NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
  });

/** Starts a line of the shell at a terminal of so many columns. `env`: all of its environment. It ends with the test file. */
export function shellAtTerminal(line: string, { cwd, env, columns = 120 }: Setting): AtTerminal {
  const command = `stty cols ${columns} rows 50; ${line}`;
  const child = spawn('script', ['--quiet', '--return', '--echo', 'never', '--command', command, '/dev/null'], {
    cwd,
    env: { SHELL: '/bin/sh', ...env },
  });
  afterFile(() => {
    if (child.exitCode === null) child.kill('SIGKILL');
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk;
  });
  // What is typed as it ends arrives nowhere.
  child.stdin.on('error', () => {});
  const ended = new Promise<Ran>((done) => child.on('close', (code) => done({ code, stdout, stderr: '' })));
  let seen = 0;
  return {
    ended,
    type: (text) => child.stdin.write(text),
    shows: (text) =>
      new Promise((found, reject) => {
        const look = () => {
          const fresh = stdout.slice(seen);
          const match = typeof text === 'string' ? text : text.exec(fresh)?.[0];
          if (match === undefined || !fresh.includes(match)) return;
          seen += fresh.indexOf(match) + match.length;
          child.stdout.off('data', look);
          found(stdout);
        };
        child.stdout.on('data', look);
        child.once('close', () => reject(new Error(`it ended without ${text}: ${stdout.slice(-LAST)}`)));
        look();
      }),
  };
}

/** Of what was printed, characters that an error shows. */
export const LAST = 3_000;

/** Everything in a text that a terminal could take for a command, or that shows nothing: our own colours left out. */
export const actingIn = (text: string): string[] =>
  text.replaceAll(/\u001b\[\d{1,2}m|\r\n/g, '\n').match(/[^\n\P{C}]|\p{Zl}|\p{Zp}/gu) ?? [];
