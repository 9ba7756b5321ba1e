/** Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`), and their precedence. */
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { baseOf, gitConfig, REWRITES, readRewrites, type Setting, settingsIn } from '../../mcp/git-config.ts';

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

/**
 * Whether a rule leads to addresses that the added rules match, from addresses that they do not match (`gh:acme/app`). Git rewrites an address only once, so
 * these bypass the broker.
 */
export function bypasses(rule: Setting, added: readonly Setting[]): boolean {
  const base = baseOf(rule);
  const governed = added.filter((one) => isRewrite(one) && kindOf(one) === kindOf(rule)).map(({ value }) => value);
  const bypassing = governed.flatMap((address) => {
    if (address.startsWith(base))
      return [rule.value + address.slice(base.length).replace(/^\//, base.endsWith(':') ? '' : '/')];
    return base.startsWith(address) ? [rule.value] : [];
  });
  return bypassing.some((one) => !governed.some((address) => one.startsWith(address)));
}

const kindOf = ({ name }: Setting): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();

/** A rule that somebody else wrote. `file`: set where git reads it only under a condition. */
export type OtherRewrite = Setting & { file?: string };

/**
 * Returns the rules that apply in this folder, and, if asked, those in files that git includes under a condition (`includeIf`), whether or not it holds in
 * this folder, because in another clone it may. Empty when git or a file cannot be read.
 */
export async function readOtherRewrites(
  env: NodeJS.ProcessEnv,
  { includesConditional, isOwn }: { includesConditional: boolean; isOwn: (rule: Setting) => boolean },
): Promise<OtherRewrite[]> {
  const here = (await readRewrites(env)) ?? [];
  const elsewhere = includesConditional ? await readConditionalRewrites(env) : [];
  return [...here, ...elsewhere].filter((one) => !isOwn(one));
}

/** Returns a line for each rule, without the user in its address, who may be a key. */
export const listedRewrites = (rules: readonly OtherRewrite[]): string[] => [
  ...new Set(
    rules.map(({ name, value, file }) => {
      const where = file === undefined ? '' : ` (in ${file}, which an includeIf names)`;
      return `${name.replace(/(https?:\/\/)[^/@]*@/, '$1…@')} = ${value}${where}`;
    }),
  ),
];

/** Returns the rules in files that git includes under a condition, and in their own includes. */
async function readConditionalRewrites(env: NodeJS.ProcessEnv): Promise<OtherRewrite[]> {
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
