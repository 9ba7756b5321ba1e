/**
 * Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`), with the run's rules before all others. Of the matching rules git takes
 * the longest; of equally long ones the first, and the system's file is read first of all. So the run's rules are in a file that replaces the system's
 * and
 * includes it. Where the user has rules for longer prefixes of the code host's addresses, the run adds rules for those prefixes, too.
 */
import { gitConfig, readRewrites } from '../git-config.ts';

/** The git configuration of the user, without the run's. */
export type GitRules = {
  /** Path of the system's configuration file; undefined when there is none. */
  system: string | undefined;
  /** Prefixes of addresses that are rewritten. */
  rewritten: readonly string[];
};

/** Reads the rules by running git as the command would from this folder; undefined when git cannot be run. */
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
 * Returns the text of the file that replaces the system's configuration.
 *
 * @param repositories address where the code host's repositories are, with a slash at the end
 * @param codeHosts prefixes of the code host's addresses
 */
export function gitRulesFile(
  { system, rewritten }: GitRules,
  repositories: string,
  codeHosts: readonly string[],
): string {
  const parts = codeHosts.flatMap((from) =>
    [
      '',
      ...rewritten.flatMap((one) => (one.length > from.length && one.startsWith(from) ? [one.slice(from.length)] : [])),
    ].map((part) => ({ base: repositories + part, from: from + part })),
  );
  const sections = parts.map(
    ({ base, from }) => `[url ${quoted(base)}]\n\tinsteadOf = ${quoted(from)}\n\tpushInsteadOf = ${quoted(from)}\n`,
  );
  return [...sections, ...(system === undefined ? [] : [`[include]\n\tpath = ${quoted(system)}\n`])].join('');
}

/** git-config(1), Syntax: in quotes, backslashes and quotes are escaped. */
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
