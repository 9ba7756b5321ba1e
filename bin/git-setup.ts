/** Settings of git that send its requests for a code host to the broker, with a credential helper that signs for it. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { ProfileError, profilePath, readProfile } from '../mcp/profile.ts';
import { doorAddress } from './door-address.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { PROGRAM } from './program-name.ts';
import { commandLine, ownLauncher } from './server-entry.ts';

export type GitSetupOptions = {
  local?: boolean;
  host: string;
  connection?: string;
  profile?: string;
  dryRun?: boolean;
  undo?: boolean;
};

/** One setting: the name is written with the file's spelling of sections; an empty helper ends the list of inherited ones. */
type Setting = { name: string; value: string };

export type GitSetupDone = {
  scope: 'global' | 'local';
  broker: string;
  added: Setting[];
  /** Sections that were there, of this broker. */
  removed: string[];
  dryRun: boolean;
  /** Repositories whose rule matches others too, because git compares prefixes of addresses. */
  prefixes: string[];
};

const run = promisify(execFile);
const REPOSITORY = /^[A-Za-z0-9._-]{1,100}\/(?:[A-Za-z0-9._-]{1,100}|\*)$/;

/**
 * Writes the settings, or removes them. What an earlier run wrote for the same repositories is replaced, and for others stays.
 *
 * @param repositories `owner/repo` or `owner/*`; none: every repository of the host
 * @throws WrongUsage, CommandFailed
 */
export async function gitSetup(repositories: readonly string[], options: GitSetupOptions): Promise<GitSetupDone> {
  const wrong = repositories.find((one) => !REPOSITORY.test(one));
  if (wrong !== undefined)
    throw new WrongUsage(`${wrong}: write a repository as owner/repo, or owner/* for all of an owner.`);
  const scope = options.local ? 'local' : 'global';
  const { url, profile } = whoAndWhere(options.profile);
  const broker = await doorAddress(url);
  const there = await sectionsOf(scope, [url, broker]);
  const helper = helperCommand(profile, broker === url ? undefined : broker);
  const added = options.undo ? [] : settingsFor(broker, repositories, options, helper);
  // Undone of some repositories, the helper stays for the others.
  const named = (section: string) =>
    repositories.length === 0 ||
    repositories.some((one) => [url, broker].some((at) => section === `url.${addressOf(at, one)}`));
  const isReplaced = (section: string) => hasSection(added, section) || hasSection(added, section.replace(url, broker));
  const removed = there.filter(options.undo ? named : isReplaced);
  if (options.undo && repositories.length > 0 && there.length - removed.length === 1) {
    const [last] = there.filter((section) => !removed.includes(section));
    if (last?.startsWith('credential.')) removed.push(last);
  }
  if (!options.dryRun) {
    for (const section of removed) await git(scope, '--remove-section', section);
    for (const { name, value } of added) await git(scope, '--add', name, value);
  }
  const prefixes = options.undo ? [] : repositories.filter((one) => !one.endsWith('/*'));
  return { scope, broker, added, removed, dryRun: options.dryRun === true, prefixes };
}

function whoAndWhere(file: string | undefined): { url: string; profile: string | undefined } {
  try {
    return { url: readProfile(process.env, file).url, profile: profilePath(process.env, file) };
  } catch (error) {
    if (error instanceof ProfileError) throw new CommandFailed(error.message);
    throw error;
  }
}

/** Where the broker has a repository, or all of an owner. */
const addressOf = (broker: string, repository: string): string => `${broker}/git/${repository.replace(/\*$/, '')}`;

function settingsFor(
  broker: string,
  repositories: readonly string[],
  { host, connection }: GitSetupOptions,
  helper: string,
): Setting[] {
  const credential = `credential.${broker}/git`;
  const at = hostOf(host);
  const rewritten = (repositories.length === 0 ? [''] : repositories).flatMap((one) =>
    addressesOf(at).map((from) => ({
      name: `url.${addressOf(broker, one)}.insteadOf`,
      value: `${from}${one.replace(/\*$/, '')}`,
    })),
  );
  return [
    { name: `${credential}.useHttpPath`, value: 'true' },
    { name: `${credential}.helper`, value: '' },
    { name: `${credential}.helper`, value: helper },
    ...(connection === undefined ? [] : [{ name: `${credential}.username`, value: `connection.${connection}` }]),
    ...rewritten,
  ];
}

/** Where the addresses of a code host's repositories begin. */
export const addressesOf = ({ origin, hostname }: URL): string[] => [
  `${origin}/`,
  `git@${hostname}:`,
  `ssh://git@${hostname}/`,
];

function hostOf(text: string): URL {
  const url = URL.parse(text);
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/')
    throw new WrongUsage(`--host ${text}: write the address of the code host, such as https://github.com.`);
  return url;
}

/** Git runs it in a shell. Without a profile's file the agent is in the environment of whoever runs git. `at`: where the broker serves git, if elsewhere. */
function helperCommand(profile: string | undefined, at: string | undefined): string {
  const launcher = ownLauncher();
  const words = launcher ? [launcher.node, launcher.script] : ['npx', '-y', 'agent-broker'];
  const named = profile === undefined ? [] : ['--profile', profile];
  const elsewhere = at === undefined ? [] : ['--at', at];
  return `!${commandLine([...words, 'git-credential', ...named, ...elsewhere], false)}`;
}

const hasSection = (settings: readonly Setting[], section: string): boolean =>
  settings.some(({ name }) => name.startsWith(`${section}.`) && !name.slice(section.length + 1).includes('.'));

/** The sections of this broker, by its addresses: its credential's, and those of addresses that are rewritten to it. */
async function sectionsOf(scope: GitSetupDone['scope'], addresses: readonly string[]): Promise<string[]> {
  const names = await git(scope, '--null', '--name-only', '--list');
  const sections = names
    .split('\0')
    .map((name) => name.slice(0, name.lastIndexOf('.')))
    .filter((section) =>
      addresses.some((at) => section === `credential.${at}/git` || section.startsWith(`url.${at}/git/`)),
    );
  return [...new Set(sections)];
}

async function git(scope: GitSetupDone['scope'], ...words: string[]): Promise<string> {
  try {
    return (await run('git', ['config', `--${scope}`, ...words])).stdout;
  } catch (error) {
    const { code, stderr = '' } = error as NodeJS.ErrnoException & { stderr?: string };
    if (code === 'ENOENT')
      throw new CommandFailed('There is no git on this machine (or not in PATH). Install it and try again.');
    // Nothing is configured yet.
    if (words.includes('--list') && /unable to read config file/.test(stderr)) return '';
    if (scope === 'local' && /not in a git directory|only be used inside/.test(stderr))
      throw new CommandFailed('This folder is no clone of a repository. Change into one, or leave out --local.');
    throw new CommandFailed(`git config failed: ${stderr.trim()}`);
  }
}

/** What was done, and what to do next. */
export function inWords({ scope, broker, added, removed, dryRun, prefixes }: GitSetupDone): string {
  const where = scope === 'local' ? 'this clone' : 'all of your clones on this machine';
  const would = dryRun ? 'would be ' : '';
  const lines: string[] = [];
  if (added.length === 0 && removed.length === 0)
    return `There is no setting for ${broker} in the ${scope} configuration of git.`;
  if (added.length === 0)
    lines.push(`${removed.length} sections ${would}removed, for ${where}:`, ...removed.map(indent));
  else
    lines.push(
      `Settings of git ${would}written, for ${where}:`,
      ...added.map(({ name, value }) => indent(`${name} = ${value === '' ? '(none of the others)' : value}`)),
      'Clone, fetch and push as always: each request is decided by the broker, and signed by the agent for five minutes.',
    );
  for (const one of prefixes)
    lines.push(
      `Git compares beginnings: the rule for ${one} sends ${one}-anything to the broker too, which refuses what is not granted.`,
    );
  if (added.length > 0) lines.push(`Take it out again with: ${PROGRAM} git-setup --undo`, WHAT_A_PUSH_NEEDS);
  return lines.join('\n');
}

/** The policy `default` holds what writes, and a first push that is refused says nothing of refs. */
const WHAT_A_PUSH_NEEDS = `A push is never held for an approval, as the policy "default" asks for: git cannot wait. To let the agent push branches under agent/, an owner gives it a policy with the rule
  { effect: allow, platforms: [codehost], scopes: ["codehost:contents.*"] }
and refs: ["agent/*"] in its grant.`;

const indent = (line: string): string => `  ${line}`;
