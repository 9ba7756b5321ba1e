/** `git config` as our commands run it, with errors that a person reads. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CommandFailed } from './failure.ts';

const run = promisify(execFile);
/** What git says is told apart by its words. */
const inEnglish = () => ({ env: { ...process.env, LC_ALL: 'C' } });

/** Runs `git config`. Answers what it prints; nothing where there is no such file yet. Throws CommandFailed. */
export async function runGitConfig(words: readonly string[]): Promise<string> {
  try {
    return (await run('git', ['config', ...words], inEnglish())).stdout;
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === 'ENOENT')
      throw new CommandFailed('There is no git on this machine (or not in PATH). Install it and try again.');
    // Nothing is configured yet.
    if (words.includes('--list') && /unable to read config file/.test(stderr)) return '';
    if (words.includes('--local') && /not in a git directory|only be used inside/.test(stderr))
      throw new CommandFailed(await whyNoClone());
    throw new CommandFailed(`git config failed: ${stderr.trim()}`);
  }
}

/** The folder of the clone that this folder is in, which all of its worktrees share. Throws CommandFailed. */
export async function commonGitFolder(): Promise<string> {
  try {
    return (await run('git', ['rev-parse', '--git-common-dir'], inEnglish())).stdout.trimEnd();
  } catch {
    throw new CommandFailed(await whyNoClone());
  }
}

/** Git keeps its hands off a clone that belongs to another user, as one that is mounted into a container, and `git config` says only that there is none. */
async function whyNoClone(): Promise<string> {
  try {
    await run('git', ['rev-parse', '--git-dir'], inEnglish());
  } catch (error) {
    const [, command] =
      /(git config --global --add safe\.directory .+)/.exec(String((error as { stderr?: string }).stderr)) ?? [];
    if (command !== undefined)
      return `The clone in this folder belongs to another user, and git does not use it. If you trust it, run "${command}", and this again.`;
  }
  return 'This folder is no clone of a repository. Change into one, or leave out --local.';
}
