/** Configures git to send its requests for a code host to the broker, with a credential helper that signs for it. */
import type { Setting } from '../../mcp/git-config.ts';
import { type Profile, ProfileError, profilePath, readProfile } from '../../mcp/profile.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { PROGRAM } from '../program-name.ts';
import { proxyBaseUrl } from '../proxy-base-url.ts';
import { commandLine } from '../server-entry.ts';
import { addressesOf, hostOf } from './addresses.ts';
import { requireGit } from './require-git.ts';
import { bypasses, goesBefore, isRewrite, isSame, listedRewrites, readOtherRewrites } from './rewrites.ts';
import {
  changeSettings,
  covers,
  helperCommand,
  leftUnused,
  otherFilesOf,
  type Rule,
  readSettings,
  type Scope,
  type Signed,
  sectionOf,
  writtenIn,
} from './settings.ts';

export type GitSetupOptions = {
  local?: boolean;
  host: string;
  connection?: string;
  profile?: string;
  dryRun?: boolean;
  undo?: boolean;
};

export type GitSetupDone = {
  scope: Scope;
  /** The broker's address; undefined when settings are removed for a profile that cannot be read. */
  broker: string | undefined;
  /** The profile's file; undefined where the agent is in the environment. */
  profile: string | undefined;
  added: Setting[];
  /** Sections from which values of git-setup were removed. */
  removed: string[];
  dryRun: boolean;
  /** Repositories whose rule also matches other repositories, because git compares prefixes of addresses. */
  prefixes: string[];
  /** Rules of git, such as `url.git@github.com:.insteadof = gh:`, that lead to the repositories without the broker. */
  bypassing: string[];
  /** When there was nothing to remove: the profiles that have settings. */
  others: (string | undefined)[];
  /** Set when the agent is halted for now. */
  warning?: string;
};

const REPOSITORY = /^(?!\.{1,2}\/)[A-Za-z0-9._-]{1,100}\/(?!\.{1,2}$)(?:[A-Za-z0-9._-]{1,100}|\*)$/;

/**
 * Writes the settings, or removes them. Settings of an earlier run are replaced for the same repositories, and kept for others.
 *
 * @param given repositories, `owner/repo` or `owner/*`; none: every repository of the host
 * @throws WrongUsage, CommandFailed
 */
export async function gitSetup(given: readonly string[], options: GitSetupOptions): Promise<GitSetupDone> {
  // A rule for `acme/app.git` would not match the address `…/acme/app`, so that git would bypass the broker there.
  const repositories = given.map((one) => one.replace(/\.git$/, ''));
  const wrong = repositories.find((one) => !REPOSITORY.test(one));
  if (wrong !== undefined)
    throw new WrongUsage(`${wrong}: write a repository as owner/repo, or owner/* for all of an owner.`);
  return await (options.undo ? undo(repositories, options) : setUp(repositories, options));
}

async function setUp(repositories: readonly string[], options: GitSetupOptions): Promise<GitSetupDone> {
  const scope = options.local ? 'local' : 'global';
  const agent = agentOf(options.profile);
  const profile = profilePath(process.env, options.profile);
  const [broker, warning] = await Promise.all([
    proxyBaseUrl(agent.url),
    requireGit(agent, repositories, options.connection),
  ]);
  const helper = helperCommand(profile, broker === agent.url ? undefined : broker);
  const added = settingsFor(broker, repositories, options, helper);
  const { signed, rules } = writtenIn(await readSettings(scope));
  const sections = new Set(added.map(sectionOf));
  // Of two rules for the same address git takes the first, whatever its target.
  const from = new Set(added.filter(isRewrite).map(({ value }) => value));
  const replaced = rules.filter(({ setting }) => sections.has(sectionOf(setting)) || from.has(setting.value));
  const gone = new Set([
    ...signed.filter(({ address }) => sections.has(`credential.${address}`)),
    ...leftUnused(signed, rules, replaced),
  ]);
  const removed = settingsOf(replaced, gone);
  // Git takes the last matching setting, so settings for a narrower address have to follow those for a wider one.
  const narrower = signed.filter(
    (one) => !gone.has(one) && [...sections].some((section) => covers(section, `credential.${one.address}`)),
  );
  const moved = settingsOf([], narrower);
  const others = await readOtherRewrites(process.env, {
    includesConditional: scope === 'global',
    isOwn: (one) => one.name.startsWith(`url.${broker}/git/`) || removed.some((gone) => isSame(gone, one)),
  });
  const first = listedRewrites(others.filter((one) => goesBefore(one, added)));
  if (first.length > 0)
    throw new CommandFailed(
      `These settings of git take precedence over those of the broker, so requests that match them would bypass it:\n${first.map(indent).join('\n')}\nTake them out (git config --show-origin --get-regexp '^url' says where they are), and run this again. Nothing was written.`,
    );
  if (!options.dryRun) await changeSettings(scope, { removed: [...removed, ...moved], added: [...added, ...moved] });
  const prefixes = repositories.filter((one) => !one.endsWith('/*'));
  const bypassing = listedRewrites(others.filter((one) => bypasses(one, added)));
  const halted = warning === undefined ? {} : { warning };
  return { ...doneBy(scope, options, removed), broker, profile, added, prefixes, bypassing, ...halted };
}

/** Removes settings by what was written, not by the broker's current address: the broker may be unreachable or moved, and the profile deleted. */
async function undo(repositories: readonly string[], options: GitSetupOptions): Promise<GitSetupDone> {
  const scope = options.local ? 'local' : 'global';
  const profile = profilePath(process.env, options.profile);
  const { signed, rules } = writtenIn(await readSettings(scope));
  const parts = repositories.map(partOf);
  const own = signed.filter((one) => one.profile === profile);
  const gone = rules.filter(({ part, by }) => own.includes(by) && (parts.length === 0 || parts.includes(part)));
  // When only some repositories are undone, the helper stays for the others.
  const removed = settingsOf(gone, parts.length === 0 ? own : leftUnused(own, rules, gone));
  const broker = signed.length === 0 ? agentOf(options.profile).url : urlOf(options.profile);
  if (!options.dryRun) await changeSettings(scope, { removed, added: [] });
  const left = scope === 'local' || options.dryRun ? [] : await otherFilesOf(profile, parts);
  if (left.length > 0)
    throw new CommandFailed(
      `Other files have settings of this agent, too, which are left as they are:\n${left.map(indent).join('\n')}\nThose of a clone are taken out there with --undo --local, any others by hand.`,
    );
  const others = own.length === 0 ? [...new Set(signed.map((one) => one.profile))] : [];
  return { ...doneBy(scope, options, removed), broker, profile, others };
}

const doneBy = (scope: Scope, { dryRun = false }: GitSetupOptions, removed: readonly Setting[]) => ({
  scope,
  ...{ added: [], removed: [...new Set(removed.map(sectionOf))], dryRun, prefixes: [], bypassing: [], others: [] },
});

/** Rules come before their helper settings, by which the rules are recognised. */
const settingsOf = (rules: Iterable<Rule>, signed: Iterable<Signed>): Setting[] => [
  ...[...rules].map(({ setting }) => setting),
  ...[...signed].flatMap(({ settings }) => settings),
];

function agentOf(file: string | undefined): Profile {
  try {
    return readProfile(process.env, file);
  } catch (error) {
    if (error instanceof ProfileError) throw new CommandFailed(error.message);
    throw error;
  }
}

function urlOf(file: string | undefined): string | undefined {
  try {
    return agentOf(file).url;
  } catch {
    return undefined;
  }
}

const partOf = (repository: string): string => repository.replace(/\*$/, '');

/** Returns the broker's address of a repository, or of all repositories of an owner. */
const addressOf = (broker: string, repository: string): string => `${broker}/git/${partOf(repository)}`;

function settingsFor(
  broker: string,
  repositories: readonly string[],
  { host, connection }: GitSetupOptions,
  helper: string,
): Setting[] {
  const at = hostOf(host);
  const rewritten = (repositories.length === 0 ? [''] : repositories).flatMap((one) =>
    addressesOf(at).flatMap((from) =>
      // For pushes, pushInsteadOf rules take precedence over insteadOf rules, however short.
      ['insteadOf', 'pushInsteadOf'].map((rule) => ({
        name: `url.${addressOf(broker, one)}.${rule}`,
        value: from + partOf(one),
      })),
    ),
  );
  const signed = repositories.length === 0 ? [`${broker}/git`] : repositories.flatMap((one) => signedFor(broker, one));
  const username = connection === undefined ? 'agent' : `connection.${connection}`;
  const credentials = signed
    // Settings for a narrower address come after those for a wider one.
    .sort((one, other) => one.length - other.length)
    .flatMap((address) => [
      { name: `credential.${address}.useHttpPath`, value: 'true' },
      // Clears the list of inherited helpers.
      { name: `credential.${address}.helper`, value: '' },
      { name: `credential.${address}.helper`, value: helper },
      // Always set, because otherwise the connection of a wider address would apply.
      { name: `credential.${address}.username`, value: username },
    ]);
  return [...credentials, ...rewritten];
}

/** Returns git's addresses of a repository, or of an owner: git compares whole segments of paths. */
function signedFor(broker: string, repository: string): string[] {
  const address = addressOf(broker, repository);
  return address.endsWith('/') ? [address.slice(0, -1)] : [address, `${address}.git`];
}

/** Describes the result and the next steps. */
export function describeGitSetup(done: GitSetupDone): string {
  const { scope, profile, added, removed, dryRun, prefixes, bypassing, others, warning } = done;
  const where = scope === 'local' ? 'this clone' : 'all of your clones on this machine';
  const would = dryRun ? 'would be ' : '';
  const lines: string[] = [];
  if (added.length === 0 && removed.length === 0)
    return [
      `There is no setting of this agent to take out in the ${scope} configuration of git.`,
      ...others.map((one) => `There are settings of another profile. Take them out with: ${undoOf(one)}`),
    ].join('\n');
  if (added.length === 0)
    lines.push(`Settings in ${removed.length} sections ${would}removed, for ${where}:`, ...removed.map(indent));
  else
    lines.push(
      `Settings of git ${would}written, for ${where}:`,
      ...added.map(inLine).map(indent),
      'Git compares URLs exactly: a URL in other letter case, or with another user name, bypasses the broker.',
      'Clone, fetch and push as always: each request is decided by the broker, and signed by the agent for five minutes.',
    );
  for (const one of prefixes)
    lines.push(
      `Git compares beginnings: the rule for ${one} sends ${one}-anything to the broker too, where nobody signs for it unless it is named as well.`,
    );
  if (bypassing.length > 0) lines.push(WHAT_BYPASSES, ...bypassing.map(indent));
  if (added.length > 0) lines.push(`Take it out again with: ${undoOf(profile)}`, WHAT_A_PUSH_NEEDS);
  if (warning !== undefined) lines.push(warning);
  return lines.join('\n');
}

const undoOf = (profile: string | undefined): string =>
  `${PROGRAM} git-setup --undo${profile === undefined ? '' : ` --profile ${commandLine([profile])}`}`;

/** Some policies hold writes, as `default` does, and git shows no reason when a first push is refused. */
const WHAT_A_PUSH_NEEDS = `A push that a policy holds for an approval, as "default" does, is refused: git cannot wait. To let the agent push branches under agent/, an owner gives it a policy with the rule
  { effect: allow, platforms: [codehost], scopes: ["codehost:contents.*"] }
and refs: ["agent/*"] in its grant.`;

const WHAT_BYPASSES =
  'Git rewrites a URL only once, so URLs that match these settings bypass the broker. Do not use them for the agent, or take them out:';

const inLine = ({ name, value }: Setting): string => `${name} = ${value === '' ? '(none of the others)' : value}`;

const indent = (line: string): string => `  ${line}`;
