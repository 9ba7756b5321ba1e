/**
 * Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`), with the run's rules before all others. Of the matching rules git takes
 * the longest; of equally long ones the first, and the system's file is read first of all. So the run's rules are in a file that replaces the system's
 * and
 * includes it. Where the user has rules for longer prefixes of the code host's addresses, the run adds rules for those prefixes, too; and for those that lead to
 * the code host (`gh:acme/app`), because git rewrites an address only once.
 */
import { baseOf, gitConfig, readRewrites, type Setting, settingsIn } from '../git-config.ts';

/**
 * The address to which git rewrites those of the code host, and for which the sidecar is its proxy: `gh` and other programs read from the output of
 * `git remote -v`, which shows rewritten addresses, which repository of which host a clone is of.
 */
export const GITHUB_BY_PROXY = 'http://github.com/';

/** The git configuration of the user, without the run's. */
export type GitRules = {
  /** Path of the system's configuration file; undefined when there is none. */
  system: string | undefined;
  /** Rules that rewrite addresses. */
  rules: readonly Setting[];
  /** Beginnings of the addresses of the clone's remotes, up to the path, where they contain a user name or a key. */
  withUser: readonly string[];
};

/** Reads the rules by running git as the command would from this folder; undefined when git cannot be run. */
export async function readGitRules(parent: NodeJS.ProcessEnv): Promise<GitRules | undefined> {
  const system = await gitConfig(['--system', '--show-origin', '--null', '--list'], parent);
  const rules = await readRewrites(parent);
  const remotes = await gitConfig(['--null', '--get-regexp', '^remote\\..*\\.(push)?url$'], parent);
  if (system === undefined || rules === undefined || remotes === undefined) return undefined;
  return {
    system: isFalse(parent.GIT_CONFIG_NOSYSTEM) ? /^file:([^\0]+)\0/.exec(system)?.[1] : undefined,
    // A line break cannot be written into the name of a section, and no address has one.
    rules: rules.filter(({ value }) => !/\p{Cc}/u.test(value)),
    withUser: settingsIn(remotes).flatMap(({ value }) => WITH_USER.exec(value)?.[0] ?? []),
  };
}

/** Whether git takes a variable for false, as it does when it is unset (git-config(1), Values). */
const isFalse = (value = ''): boolean => /^(?:0*|false|no|off)$/i.test(value);

const WITH_USER = /^https?:\/\/[^/@\p{Cc}]+@[^/@\p{Cc}]+\//u;

export type RunRules = {
  /** Address to which those of the code host's repositories are rewritten, with a slash at the end. */
  repositories: string;
  /** Prefixes of the code host's addresses. */
  codeHosts: readonly string[];
  /** Further settings of the run, each in a section of an address. */
  settings: readonly Setting[];
};

/** Returns the text of the file that replaces the system's configuration. */
export function gitRulesFile({ system, rules, withUser }: GitRules, run: RunRules): string {
  const { repositories, settings } = run;
  const ofCodeHost = withUser.filter((one) => run.codeHosts.includes(one.replace(/[^/]*@/, '')));
  const codeHosts = [...new Set([...run.codeHosts, ...ofCodeHost])];
  const sections = [
    ...rules.flatMap((rule) => leadingTo(rule, codeHosts, repositories)),
    ...codeHosts.flatMap((from) => {
      const longer = rules.flatMap(({ value }) =>
        value.length > from.length && value.startsWith(from) ? [value.slice(from.length)] : [],
      );
      return ['', ...longer].map((part) => ({ base: repositories + part, from: from + part, kinds: KINDS }));
    }),
  ].map(({ base, from, kinds }) => sectionText('url', base, Object.fromEntries(kinds.map((kind) => [kind, from]))));
  const others = settings.map(({ name, value }) => {
    const [section, key] = [name.slice(0, name.indexOf('.')), name.slice(name.lastIndexOf('.') + 1)];
    return sectionText(section, baseOf({ name }), { [key]: value });
  });
  return [
    ...[...sections, ...others],
    ...(system === undefined ? [] : [`[include]\n\tpath = ${quoted(system)}\n`]),
  ].join('');
}

const sectionText = (section: string, base: string, values: Readonly<Record<string, string>>): string =>
  `[${section} ${quoted(base)}]\n${Object.entries(values)
    .map(([key, value]) => `\t${key} = ${quoted(value)}\n`)
    .join('')}`;

const KINDS = ['insteadOf', 'pushInsteadOf'];

/** Returns the run's rules for the addresses that a rule of the user rewrites to the code host. */
function leadingTo(rule: Setting, codeHosts: readonly string[], repositories: string) {
  const [base, kinds] = [
    baseOf(rule),
    KINDS.filter((kind) => rule.name.toLowerCase().endsWith(`.${kind.toLowerCase()}`)),
  ];
  const [within] = codeHosts.filter((host) => base.startsWith(host)).sort((a, b) => b.length - a.length);
  if (within !== undefined) return [{ base: repositories + base.slice(within.length), from: rule.value, kinds }];
  // A rule may lead to more than the code host, such as `https://` in place of `git://`.
  return codeHosts
    .filter((host) => host.startsWith(base))
    .map((host) => ({ base: repositories, from: rule.value + host.slice(base.length), kinds }));
}

/** git-config(1), Syntax: in quotes, backslashes and quotes are escaped. */
const quoted = (text: string): string => `"${text.replaceAll(/["\\]/g, '\\$&')}"`;
