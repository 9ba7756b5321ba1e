/** Reads the configuration of git by running git. */
import { execFile } from 'node:child_process';

/** One setting. The name has the file's spelling of sections; git writes its last part in lower case. */
export type Setting = { name: string; value: string };

/** Names of rules that rewrite addresses, for `git config --get-regexp`. */
export const REWRITES = '^url\\..*\\.(push)?insteadof$';

/** Returns the address that a rule rewrites to, without a user or key in it (`https://ghp_…@github.com/`). */
export const baseOf = ({ name }: Pick<Setting, 'name'>): string =>
  name.slice(name.indexOf('.') + 1, name.lastIndexOf('.')).replace(/^(https?:\/\/)[^/@]*@/, '$1');

const TIMEOUT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;

/** Parses the names and values that git prints with `--null`. */
export const settingsIn = (text: string): Setting[] =>
  text
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [name = '', value = ''] = entry.split(/\n(.*)/s);
      return { name, value };
    });

/** Returns the output of `git config`: empty when it finds nothing, undefined when git cannot be run. `cwd`: the current folder when absent. */
export function gitConfig(words: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<string | undefined> {
  const options = { env, cwd, timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES };
  return new Promise((resolve) => {
    execFile('git', ['config', ...words], options, (error, stdout) =>
      resolve(error && typeof error.code !== 'number' ? undefined : stdout),
    );
  });
}

/**
 * Returns the address-rewriting rules of all scopes (`url.<base>.insteadOf`, `pushInsteadOf`) that apply in this folder; undefined when git cannot be
 * run.
 */
export async function readRewrites(env: NodeJS.ProcessEnv): Promise<Setting[] | undefined> {
  const found = await gitConfig(['--null', '--get-regexp', REWRITES], env);
  return found === undefined ? undefined : settingsIn(found);
}
