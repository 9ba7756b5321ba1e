/** Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`), and their precedence. */
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { gitConfig, REWRITES, type Setting, settingsIn } from '../mcp/git-config.ts';

/** Whether a setting is such a rule. */
export const isRewrite = ({ name }: Setting): boolean => /\.(?:push)?insteadof$/i.test(name);

/** Whether two settings are equal: git writes the last part of a name in lower case. */
export const isSame = (one: Setting, other: Setting): boolean =>
  one.value === other.value && one.name.toLowerCase() === other.name.toLowerCase();

/**
 * Whether git prefers this rule to an added one, for an address that the added rule matches. Of rules of one kind git takes the longest; of equally long
 * ones the first.
 */
export function goesBefore(rule: Setting, added: readonly Setting[]): boolean {
  return added.some((one) => isRewrite(one) && kindOf(one) === kindOf(rule) && rule.value.startsWith(one.value));
}

const kindOf = ({ name }: Setting): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();

/** A rule in a file that git reads only under a condition. */
export type ConditionalRewrite = Setting & { file: string };

/**
 * Returns the rules in files that git includes under a condition (`includeIf`), whether or not it holds in this folder, and in their own includes: in
 * another clone it may hold. Empty when git or a file cannot be read.
 */
export async function readConditionalRewrites(env: NodeJS.ProcessEnv): Promise<ConditionalRewrite[]> {
  const files = new Set(await conditionalFiles([], env));
  // The loop also visits files that are added during it.
  for (const file of files)
    for (const more of await conditionalFiles(['--file', file, '--includes'], env)) files.add(more);
  const found = [...files].map(async (file) => {
    const rules = await gitConfig(['--file', file, '--includes', '--null', '--get-regexp', REWRITES], env);
    return settingsIn(rules ?? '').map((rule) => ({ ...rule, file }));
  });
  return (await Promise.all(found)).flat();
}

/** Returns the paths that `includeIf` names in that place. */
async function conditionalFiles(place: readonly string[], env: NodeJS.ProcessEnv): Promise<string[]> {
  const args = [...place, '--null', '--show-origin', '--get-regexp', '^includeif\\..*\\.path$'];
  const entries = ((await gitConfig(args, env)) ?? '').split('\0');
  return entries.flatMap((origin, i) =>
    i % 2 === 0
      ? settingsIn(entries[i + 1] ?? '').map(({ value }) => includedPath(value, origin.replace(/^file:/, ''), env))
      : [],
  );
}

/** Resolves a path as git does: `~/` is the home folder, and other paths are relative to the file that names them (git-config(1), Includes). */
const includedPath = (path: string, from: string, { HOME: home }: NodeJS.ProcessEnv): string =>
  path.startsWith('~/') ? join(home || homedir(), path.slice(2)) : resolve(dirname(from), path);
