/** A new user's machine: an empty home, the checkout behind its public address, and terminals in which lines are typed. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { COMPILE_CACHE, ROOT } from './checkout.ts';
import { afterFile } from './runner/after-file.ts';
import { newFolder } from './stores.ts';
import { type AtTerminal, LAST, missingScript, shellAtTerminal } from './terminal.ts';

/** What is missing on this machine; undefined when nothing is. */
export const withoutNewcomer: string | undefined = (() => {
  if (missingScript) return missingScript;
  for (const tool of ['git', 'npm', 'bash'])
    try {
      execFileSync(tool, ['--version'], { stdio: 'ignore' });
    } catch {
      return `${tool} is not installed`;
    }
  try {
    execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, stdio: 'ignore' });
  } catch {
    return 'this is no git checkout';
  }
  return undefined;
})();
if (withoutNewcomer && process.env.CI) throw new Error(withoutNewcomer);

export type Newcomer = {
  home: string;
  /** Types lines into a terminal in this folder of the home, and returns their output; throws when one fails. */
  type(lines: readonly string[], folder?: string, answers?: readonly Answering[]): Promise<string>;
  /** Does the same for a program that keeps running: returns its output up to `text`. */
  start(lines: readonly string[], text: RegExp): Promise<string>;
};

/** What a person types once a terminal shows something. */
export type Answering = { shown: RegExp; typed: string };

/** `address`: where the pages clone from; it leads to this checkout. `env`: further environment variables. */
export function newcomer(address: string, env: Record<string, string>): Newcomer {
  const home = mkdtempSync(join(tmpdir(), 'agent-broker-test-'));
  // Packages of 400 MB, which a busy disk takes a minute to remove: longer than a hook may take.
  afterFile(() => spawn('rm', ['-rf', home], { detached: true, stdio: 'ignore' }).unref());
  const npm = (...words: string[]) =>
    execFileSync('npm', ['config', 'get', ...words])
      .toString()
      .trim();
  const bare = join(newFolder(), 'bare.git');
  execFileSync('git', ['clone', '-q', '--bare', ROOT, bare]);
  // Uncommitted changes are part of what is tested. When files are only newer than git's index, as in a new clone, `stash create` exits with 1, since
  // there is nothing to store. `status` corrects the index.
  const changed = execFileSync('git', ['status', '--porcelain', '--untracked-files=no'], { cwd: ROOT });
  const stash = changed.length > 0 ? execFileSync('git', ['stash', 'create'], { cwd: ROOT }).toString().trim() : '';
  execFileSync('git', ['push', '-q', bare, `${stash || 'HEAD'}:refs/heads/tested`], { cwd: ROOT });
  execFileSync('git', ['symbolic-ref', 'HEAD', 'refs/heads/tested'], { cwd: bare });
  // A path, not a file URL: from a path git copies the objects, and does not pack and index them again.
  writeFileSync(join(home, '.gitconfig'), `[url "${bare}"]\n  insteadOf = ${address}\n`);
  const environment = {
    HOME: home,
    // The machine's Node and tools, not those of the checkout.
    PATH: process.env
      .PATH!.split(delimiter)
      .filter((folder) => !folder.includes('node_modules'))
      .join(delimiter),
    PORT: '0',
    LOG_LEVEL: 'warn',
    DRAIN_SECONDS: '0',
    // Only npm's cache from `npm ci` is used, without network requests.
    npm_config_cache: npm('cache'),
    npm_config_registry: npm('registry'),
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
    npm_config_progress: 'false',
    // The commands and brokers of a test load the same sources from one checkout.
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...env,
  };
  const open = (lines: readonly string[], folder: string): AtTerminal => {
    const file = join(newFolder(), 'typed.sh');
    writeFileSync(file, `set -e\n${lines.join('\n')}\n`);
    return shellAtTerminal(`bash ${file}`, { cwd: join(home, folder), env: environment });
  };
  return {
    home,
    type: async (lines, folder = '.', answers = []) => {
      const terminal = open(lines, folder);
      for (const { shown, typed } of answers) {
        await terminal.shows(shown);
        terminal.type(typed);
      }
      const { code, stdout } = await terminal.ended;
      if (code !== 0) throw new Error(`${lines.join('\n')}\nended with ${code}\n${stdout.slice(-LAST)}`);
      return stdout.replaceAll('\r\n', '\n');
    },
    start: async (lines, text) => {
      const terminal = open(lines, '.');
      afterFile(async () => {
        // As when its window is closed: the shell, npm and the broker end.
        terminal.type('\u0003');
        await terminal.ended;
      });
      return await terminal.shows(text);
    },
  };
}
