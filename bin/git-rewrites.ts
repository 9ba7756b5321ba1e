/** Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`): which of them git takes first. */
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { gitConfig, REWRITES, type Setting, settingsIn } from '../mcp/git-config.ts';

/** Whether a setting is such a rule. */
export const isRewrite = ({ name }: Setting): boolean => /\.(?:push)?insteadof$/i.test(name);

/** Whether two settings are one: git writes the last part of a name in small letters. */
export const isSame = (one: Setting, other: Setting): boolean =>
  one.value === other.value && one.name.toLowerCase() === other.name.toLowerCase();

/**
 * Whether git takes this rule before one that is added, for an address of that one: of rules of a kind it takes the longest, and of those of one
 * length the first.
 */
export function goesBefore(rule: Setting, added: readonly Setting[]): boolean {
  return added.some((one) => isRewrite(one) && kindOf(one) === kindOf(rule) && rule.value.startsWith(one.value));
}

const kindOf = ({ name }: Setting): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();

/** A rule in a file that git reads under a condition alone. */
export type ConditionalRewrite = Setting & { file: string };

/**
 * The rules in files that git includes under a condition (`includeIf`), whether it holds in this folder or not, and in what those include: in
 * another clone it may. Nothing where git, or a file, cannot be read.
 */
export async function readConditionalRewrites(env: NodeJS.ProcessEnv): Promise<ConditionalRewrite[]> {
  const files = new Set(await conditionalFiles([], env));
  // What is added meanwhile is visited, too.
  for (const file of files)
    for (const more of await conditionalFiles(['--file', file, '--includes'], env)) files.add(more);
  const found = [...files].map(async (file) => {
    const rules = await gitConfig(['--file', file, '--includes', '--null', '--get-regexp', REWRITES], env);
    return settingsIn(rules ?? '').map((rule) => ({ ...rule, file }));
  });
  return (await Promise.all(found)).flat();
}

/** Paths that `includeIf` names there. */
async function conditionalFiles(place: readonly string[], env: NodeJS.ProcessEnv): Promise<string[]> {
  const words = [...place, '--null', '--show-origin', '--get-regexp', '^includeif\\..*\\.path$'];
  const entries = ((await gitConfig(words, env)) ?? '').split('\0');
  return entries.flatMap((origin, i) =>
    i % 2 === 0
      ? settingsIn(entries[i + 1] ?? '').map(({ value }) => includedPath(value, origin.replace(/^file:/, ''), env))
      : [],
  );
}

/** As git reads it: `~/` is the home folder, and any other path begins at the file that names it (git-config(1), Includes). */
const includedPath = (path: string, from: string, { HOME: home }: NodeJS.ProcessEnv): string =>
  path.startsWith('~/') ? join(home || homedir(), path.slice(2)) : resolve(dirname(from), path);
