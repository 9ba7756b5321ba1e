/** The configuration of git, as git itself tells it. */
import { execFile } from 'node:child_process';

/** One value. The name has the file's spelling of sections; git writes its last part in small letters. */
export type Setting = { name: string; value: string };

/** Names of rules that rewrite addresses, for `git config --get-regexp`. */
export const REWRITES = '^url\\..*\\.(push)?insteadof$';

const GIVEN_UP_AFTER_MS = 5_000;
const MOST_BYTES = 1024 * 1024;

/** Names and values as git prints them with `--null`. */
export const settingsIn = (text: string): Setting[] =>
  text
    .split('\0')
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [name = '', value = ''] = entry.split(/\n(.*)/s);
      return { name, value };
    });

/** What `git config` prints; nothing where it finds nothing; undefined where there is no git that could be asked. `cwd`: this folder unless told. */
export function gitConfig(words: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): Promise<string | undefined> {
  const options = { env, cwd, timeout: GIVEN_UP_AFTER_MS, maxBuffer: MOST_BYTES };
  return new Promise((resolve) => {
    execFile('git', ['config', ...words], options, (error, stdout) =>
      resolve(error && typeof error.code !== 'number' ? undefined : stdout),
    );
  });
}

/** The rules of all scopes that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`), as they hold in this folder; undefined as above. */
export async function readRewrites(env: NodeJS.ProcessEnv): Promise<Setting[] | undefined> {
  const found = await gitConfig(['--null', '--get-regexp', REWRITES], env);
  return found === undefined ? undefined : settingsIn(found);
}
