/**
 * Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`), ours before all others. Of the rules that match git takes the longest,
 * of those of one length the first, and the files of the system come first of all. So ours stand in a file in the place of the system's, which it
 * includes; and where the user has rules for a part of the code host's addresses, ours are there for that part, too.
 */
import { gitConfig, readRewrites } from '../git-config.ts';

/** What git is set to do without us. */
export type GitRules = {
  /** The configuration of the system; undefined: there is none. */
  system: string | undefined;
  /** Beginnings of addresses that are rewritten. */
  rewritten: readonly string[];
};

/** Reads them by git itself, as the command would from this folder; undefined: there is no git that could be asked. */
export async function readGitRules(parent: NodeJS.ProcessEnv): Promise<GitRules | undefined> {
  const system = await gitConfig(['--system', '--show-origin', '--null', '--list'], parent);
  const rules = await readRewrites(parent);
  if (system === undefined || rules === undefined) return undefined;
  return {
    system: parent.GIT_CONFIG_NOSYSTEM ? undefined : /^file:([^\0]+)\0/.exec(system)?.[1],
    rewritten: rules.map(({ value }) => value),
  };
}

/**
 * The file that stands in the place of the system's configuration.
 *
 * @param door where the code host's repositories are, with a slash at the end
 * @param codeHosts beginnings of the code host's addresses
 */
export function gitRulesFile({ system, rewritten }: GitRules, door: string, codeHosts: readonly string[]): string {
  const parts = codeHosts.flatMap((from) =>
    [
      '',
      ...rewritten.flatMap((one) => (one.length > from.length && one.startsWith(from) ? [one.slice(from.length)] : [])),
    ].map((part) => ({ base: door + part, from: from + part })),
  );
  const sections = parts.map(
    ({ base, from }) => `[url ${quoted(base)}]\n\tinsteadOf = ${quoted(from)}\n\tpushInsteadOf = ${quoted(from)}\n`,
  );
  return [...sections, ...(system === undefined ? [] : [`[include]\n\tpath = ${quoted(system)}\n`])].join('');
}

/** git-config(1), Syntax: in quotes a backslash and a quote are escaped. */
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
