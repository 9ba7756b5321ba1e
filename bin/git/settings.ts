/** Reads the configuration of git and finds what git-setup wrote into it, recognised by content, so that a person's own values are never changed. */
import { existsSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Setting, settingsIn } from '../../mcp/git-config.ts';
import { CommandFailed } from '../failure.ts';
import { commonGitFolder, runGitConfig } from '../run/git.ts';
import { commandLine, ownLauncher } from '../server-entry.ts';
import { changeGitConfig } from './change-config.ts';
import { isSame } from './rewrites.ts';

export type Scope = 'global' | 'local';

/** An address for which git calls the helper. `profile`: the file with the helper's key; undefined: the agent is in the environment. */
export type Signed = { address: string; profile: string | undefined; settings: readonly Setting[] };

/**
 * A rule that leads git to the broker. `part`: the repositories it covers: `acme/app`, `acme/`, or '' for all of the host. `by`: the helper settings of
 * its target.
 */
export type Rule = { setting: Setting; part: string; by: Signed };

/** Matches the broker's helper, as `helperCommand` of any release writes it; other helpers have a similar form (`!gh auth git-credential`). */
const HELPER =
  /^!(?:.*[\s/\\'"])?agent-broker(?:\.js|@\S+)?['"]? git-credential(?: --profile ('[^']*'(?:\\''[^']*')*|\S+))?(?: --at \S+)?$/;
const CODE_HOST = /^(?:(?:https?|git|(?:git\+)?ssh):\/\/[^/]+\/|(?:git@[^@:/]+|[^@:/]+\.[^@:/]+):\/?)(.*)$/;
const USERNAME = /^(?:agent$|connection\.)/;

/**
 * The helper's command, which git runs in a shell. Without a profile's file the agent is in the environment of whoever runs git. `at`: where the broker
 * serves git, if elsewhere.
 */
export function helperCommand(profile: string | undefined, at: string | undefined): string {
  const launcher = ownLauncher();
  const words = launcher ? [launcher.node, launcher.script] : ['npx', '-y', 'agent-broker'];
  const named = profile === undefined ? [] : ['--profile', profile];
  const elsewhere = at === undefined ? [] : ['--at', at];
  return `!${commandLine([...words, 'git-credential', ...named, ...elsewhere], false)}`;
}

/** Whether a helper of git is the broker's. */
export const isOwnHelper = (value: string): boolean => HELPER.test(value);

/** Returns all values of the scope, in the order in which git reads them. Throws CommandFailed. */
export const readSettings = async (scope: Scope): Promise<Setting[]> =>
  (await Promise.all(placesOf(scope).map(settingsAt))).flat();

/**
 * Returns files outside the global scope, such as `file:.git/config`, with rules of a profile for these parts, or for any without parts. Throws
 * CommandFailed.
 */
export async function otherFilesOf(profile: string | undefined, parts: readonly string[]): Promise<string[]> {
  const entries = (await runGitConfig(['--null', '--show-origin', '--list'])).split('\0');
  const all = entries.flatMap((origin, i) =>
    i % 2 === 0 ? settingsIn(entries[i + 1] ?? '').map((setting) => ({ origin, setting })) : [],
  );
  const own = globalFiles().map((file) => `file:${file}`);
  const files = Map.groupBy(all, ({ origin }) => origin);
  const isLeft = ({ part, by }: Rule) => by.profile === profile && (parts.length === 0 || parts.includes(part));
  return [...files].flatMap(([file, found]) =>
    !own.includes(file) && writtenIn(found.map(({ setting }) => setting)).rules.some(isLeft) ? [file] : [],
  );
}

/** Finds what git-setup wrote, in this or an earlier version. A rule counts only where the broker's helper is set for the rule's target. */
export function writtenIn(all: readonly Setting[]): { signed: Signed[]; rules: Rule[] } {
  const inSection = Map.groupBy(all, (one) => sectionOf(one));
  const signed = [...inSection].flatMap(([section, settings]) => {
    const helper = section.startsWith('credential.') ? settings.findLast((one) => HELPER.test(one.value)) : undefined;
    if (helper === undefined) return [];
    const own = settings.filter(({ name, value }) => {
      if (name.endsWith('.helper')) return value === '' || HELPER.test(value);
      return name.endsWith('.username') ? USERNAME.test(value) : /\.usehttppath$/i.test(name) && value === 'true';
    });
    return [{ address: section.slice('credential.'.length), profile: profileOf(helper.value), settings: own }];
  });
  const rules = all.flatMap((setting) => {
    const [, address] = /^url\.(.*)\.(?:push)?insteadof$/i.exec(setting.name) ?? [];
    const [, part] = CODE_HOST.exec(setting.value) ?? [];
    if (address === undefined || part === undefined || !address.endsWith(`/git/${part}`)) return [];
    const [by] = signed.filter((one) => covers(one.address, address)).sort(longestFirst);
    return by === undefined ? [] : [{ setting, part, by }];
  });
  return { signed, rules };
}

/** Returns the section that a value is in. */
export const sectionOf = ({ name }: Pick<Setting, 'name'>): string => name.slice(0, name.lastIndexOf('.'));

/** Whether git applies the settings of one address to another: git compares whole segments of paths. */
export const covers = (address: string, other: string): boolean => other === address || other.startsWith(`${address}/`);

/** Returns the helper settings that no remaining rule uses, once some rules are removed. */
export function leftUnused(all: readonly Signed[], rules: readonly Rule[], gone: readonly Rule[]): Signed[] {
  const uses = ({ by }: Rule, { address }: Signed) => address === by.address || address === `${by.address}.git`;
  const left = rules.filter((rule) => !gone.includes(rule));
  return all.filter((one) => gone.some((rule) => uses(rule, one)) && !left.some((rule) => uses(rule, one)));
}

/** Removes values, with sections that become empty, and appends others: each file atomically. Throws CommandFailed. */
export async function changeSettings(
  scope: Scope,
  { removed, added }: { removed: readonly Setting[]; added: readonly Setting[] },
): Promise<void> {
  const written = added.length === 0 ? undefined : await fileToWrite(scope);
  const files = scope === 'local' ? [await localFile()] : globalFiles();
  const distinct = [...new Map(removed.map((one) => [`${one.name}\n${one.value}`, one])).values()];
  // The file with the additions comes last, so that a new rule takes effect only after all removals.
  for (const file of [...files.filter((one) => one !== written), ...(written === undefined ? [] : [written])]) {
    const here = existsSync(file) ? await settingsAt(['--file', file]) : [];
    const gone = distinct.filter((one) => here.some((other) => isSame(one, other)));
    const more = file === written ? added : [];
    if (gone.length > 0 || more.length > 0) await changeGitConfig(file, { removed: gone, added: more });
  }
}

/** Returns the file where git writes new settings of the scope (git-config(1), Files). Throws CommandFailed. */
async function fileToWrite(scope: Scope): Promise<string> {
  if (scope === 'local') return await localFile();
  const { GIT_CONFIG_GLOBAL: given, HOME: home = homedir() } = process.env;
  // Git replaces the file: a device such as /dev/null, too, where it has the permission.
  if (given === '' || (given !== undefined && statSync(given, { throwIfNoEntry: false })?.isFile() === false))
    throw new CommandFailed(
      `GIT_CONFIG_GLOBAL is ${given || 'empty'}, which is no file that settings can be kept in. Name a file there, or unset it. Nothing was written.`,
    );
  return given ?? globalFiles().at(-1) ?? join(home, '.gitconfig');
}

const localFile = async (): Promise<string> => join(await commonGitFolder(), 'config');

const longestFirst = (a: Signed, b: Signed): number => b.address.length - a.address.length;

/** Returns the profile's file that the helper's command names. */
function profileOf(helper: string): string | undefined {
  const [, word] = HELPER.exec(helper) ?? [];
  return word?.startsWith("'") ? word.slice(1, -1).replaceAll(`'\\''`, "'") : word;
}

/** Options of `git config` for each file of the scope. `--global` selects only one of the two global files, depending on which exist. */
const placesOf = (scope: Scope): string[][] =>
  scope === 'local' ? [['--local']] : globalFiles().map((file) => ['--file', file]);

/** Returns the existing global files, in the order in which git reads them (git-config(1), Files). */
function globalFiles(): string[] {
  const { GIT_CONFIG_GLOBAL: given, XDG_CONFIG_HOME: folder, HOME: home = homedir() } = process.env;
  const files = [join(folder || join(home, '.config'), 'git', 'config'), join(home, '.gitconfig')];
  return (given === undefined ? files : [given]).filter(existsSync);
}

const settingsAt = async (place: readonly string[]): Promise<Setting[]> =>
  settingsIn(await runGitConfig([...place, '--null', '--list']));
