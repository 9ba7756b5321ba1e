/** Runs `git config`, and `git` for the folder of a clone, with errors for people. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CommandFailed } from '../failure.ts';

const run = promisify(execFile);
/** Messages of git are recognised by their English text. */
const inEnglish = () => ({ env: { ...process.env, LC_ALL: 'C' } });

/** Runs `git config`. Returns its output; empty where the file does not exist yet. Throws CommandFailed. */
export async function runGitConfig(args: readonly string[]): Promise<string> {
  try {
    return (await run('git', ['config', ...args], inEnglish())).stdout;
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === 'ENOENT')
      throw new CommandFailed('There is no git on this machine (or not in PATH). Install it and try again.');
    // Nothing is configured yet. A file that must not be read may hold anything.
    if (args.includes('--list') && /unable to read config file .*No such file/.test(stderr)) return '';
    if (args.includes('--local') && /not in a git directory|only be used inside/.test(stderr))
      throw new CommandFailed(await whyNoClone());
    throw new CommandFailed(`git config failed: ${stderr.trim()}`);
  }
}

/** Returns the git folder of the current clone, which all of its worktrees share. Throws CommandFailed. */
export async function commonGitFolder(): Promise<string> {
  try {
    return (await run('git', ['rev-parse', '--git-common-dir'], inEnglish())).stdout.trimEnd();
  } catch {
    throw new CommandFailed(await whyNoClone());
  }
}

/** Git ignores a clone that belongs to another user, such as one mounted into a container, and `git config` reports only that there is none. */
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
