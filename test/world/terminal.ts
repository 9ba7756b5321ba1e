/** Runs programs at a real Linux terminal, by `script` of util-linux, and finds text that could act on a terminal. */
import { execFileSync, spawn } from 'node:child_process';
import { BIN, COMPILE_CACHE } from './checkout.ts';
import type { Ran } from './command.ts';
import { afterFile } from './runner/after-file.ts';

/** Without a `script` with these options the tests are skipped, with the reason; CI must have one. */
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
  /** Resolves with the whole output when the output since the last `shows` contains `text`. Rejects when the program ends without it. */
  shows(text: string | RegExp): Promise<string>;
  type(text: string): void;
  /** `stdout`: the whole output. */
  ended: Promise<Ran>;
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/** Starts our command at a terminal. `env`: its whole environment, beside PATH, TERM and the compile cache. */
export const atTerminal = (words: readonly string[], { env, ...setting }: Setting): AtTerminal =>
  shellAtTerminal(`exec ${[process.execPath, BIN, ...words].map(quoted).join(' ')}`, {
    ...setting,
    env: { PATH: process.env.PATH!, TERM: 'xterm-256color', NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
  });

/** Starts a shell line at a terminal with so many columns. `env`: its whole environment. It ends with the test file. */
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
  // Ignores the error when input is typed while it ends.
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

/** Number of characters of the output that an error shows. */
export const LAST = 3_000;

/** Returns everything in a text that a terminal could interpret as a command, or that is invisible, except our own colours. */
export const actingIn = (text: string): string[] =>
  text.replaceAll(/\u001b\[\d{1,2}m|\r\n/g, '\n').match(/[^\n\P{C}]|\p{Zl}|\p{Zp}/gu) ?? [];
