/** Manages the channels on which owners are notified: lists, adds, tests and removes them. */
import type { Body, Channel } from '../../broker/console/answers.ts';
import { commandWith } from '../command-with.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { findNamed } from '../find-named.ts';
import { openOwnerApi } from '../owner-api.ts';
import { readSecret } from '../read-secret.ts';
import { line, styled } from '../terminal/line.ts';
import { printJson, printLines, printResult, terminalWidth } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';
import { expectUrlSetting } from '../url-setting.ts';

export type Options = ConnectionOptions & { json?: boolean };

export type AddOptions = Options & {
  event?: string[];
  agent?: string[];
  platform?: string[];
  quiet?: string;
  zone?: string;
  remind?: number;
  secretStdin?: boolean;
  secretEnv?: string;
  signingSecretEnv?: string;
};

const COLUMNS = [
  { title: 'NAME', least: 10 },
  { title: 'KIND', least: 7 },
  { title: 'STATE', least: 7 },
  { title: 'TELLS', least: 10 },
];

export async function listChannels(options: Options): Promise<void> {
  const { channels } = await (await openOwnerApi(options)).ask('GET', '/owner/channels');
  const rows = channels.map((one) => [
    styled('bold', one.name),
    line`${one.kind}`,
    line`${one.last_error === null ? one.status : `${one.status}: ${one.last_error}`}`,
    line`${one.status === 'unreadable' ? 'nothing' : describeRules(one.rules)}`,
  ]);
  printResult(options, channels, () =>
    rows.length === 0
      ? [
          line`There are no channels, so owners get no notices. Add one: ${commandWith(options, 'channel add NAME KIND')}`,
        ]
      : table(COLUMNS, rows, terminalWidth()),
  );
}

function describeRules({ events, agents, platforms, quiet }: Channel['rules']): string {
  return [
    events?.join(', ') ?? 'everything',
    ...(agents ? [`of ${agents.join(', ')}`] : []),
    ...(platforms ? [`on ${platforms.join(', ')}`] : []),
    ...(quiet ? [`not ${quiet.from} to ${quiet.to} ${quiet.zone}`] : []),
  ].join(' ');
}

/** Settings that are lists even with a single entry. */
const LISTS = new Set(['to']);
/** Settings that are numbers. */
const NUMBERS = new Set(['port', 'thread']);

/** Members of a channel that are no settings of its kind, and how they are given. A secret in an argument would be in the history of the shell. */
const OTHERWISE: Readonly<Record<string, string>> = {
  name: 'the first argument',
  kind: 'the second argument',
  events: '--event',
  agents: '--agent',
  platforms: '--platform',
  quiet: '--quiet',
  remind_minutes: '--remind',
  secret: '--secret-stdin or --secret-env',
};

/** Parses `U0123456789:ann@acme.example,…` into the form that the owner API accepts. */
function peopleOf(text: string): Record<string, string> {
  const pairs = text.split(',').map((one) => one.split(':'));
  if (pairs.some(([id, email, more]) => !id || !email || more !== undefined))
    throw new WrongUsage('Write people as id:address, such as people=U0123456789:ann@acme.example.');
  return Object.fromEntries(pairs);
}

/** Parses `key=value` settings into the form that the owner API accepts. Throws WrongUsage. */
function settingsOf(given: readonly string[]): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const setting of given) {
    const at = setting.indexOf('=');
    if (at < 1) throw new WrongUsage(`"${setting}" is no setting: write key=value, such as topic=acme-approvals.`);
    const [key, value] = [setting.slice(0, at), setting.slice(at + 1)];
    if (Object.hasOwn(OTHERWISE, key)) throw new WrongUsage(`${key} is given as ${OTHERWISE[key]}, not as a setting.`);
    if (LISTS.has(key)) settings[key] = value.split(',');
    else if (key === 'people') settings[key] = peopleOf(value);
    else settings[key] = /^\d{1,9}$/.test(value) && NUMBERS.has(key) ? Number(value) : value;
  }
  return settings;
}

function quietOf({ quiet, zone }: AddOptions): object | undefined {
  if (quiet === undefined) return undefined;
  const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(quiet) ?? [];
  if (!from || !to) throw new WrongUsage('Write --quiet as two times of day: 22:00-07:00.');
  return { from, to, zone: zone ?? Intl.DateTimeFormat().resolvedOptions().timeZone };
}

/** Adds a channel. Throws WrongUsage; CommandFailed with the broker's reason for a refusal. */
export async function addChannel(
  name: string,
  kind: string,
  given: readonly string[],
  options: AddOptions,
): Promise<void> {
  const { event, agent, platform, remind, secretStdin, secretEnv, signingSecretEnv } = options;
  const quiet = quietOf(options);
  const settings = settingsOf(given);
  expectUrlSetting(kind, ['webhook'], settings, options);
  const hasSecret = secretStdin || secretEnv !== undefined;
  const token = hasSecret
    ? await readSecret({ stdin: secretStdin, env: secretEnv }, 'the secret', '--secret-stdin or --secret-env')
    : undefined;
  const signing =
    signingSecretEnv === undefined
      ? undefined
      : await readSecret({ env: signingSecretEnv }, 'the signing secret', '--signing-secret-env');
  if (signing !== undefined && token === undefined)
    throw new WrongUsage('Give the token, too: --secret-stdin or --secret-env.');
  const secret = signing === undefined ? token : { token, signing_secret: signing };
  const body = {
    ...settings,
    name,
    kind,
    ...(secret !== undefined && { secret }),
    ...(event && { events: event }),
    ...(agent && { agents: agent }),
    ...(platform && { platforms: platform }),
    ...(quiet && { quiet }),
    ...(remind !== undefined && { remind_minutes: remind }),
  };
  // The broker validates the kind: it may support more kinds than this command was written for.
  const made = await (await openOwnerApi(options)).ask(
    'POST',
    '/owner/channels',
    body as Body<'POST', '/owner/channels'>,
  );
  printResult(options, made, () => [
    line`The channel ${styled('bold', name)} was added. Try it: ${commandWith(options, `channel test ${name}`)}`,
    ...(made.secret === undefined
      ? []
      : [line`The key with which the receiver verifies, shown this once: ${made.secret}`]),
    ...(made.clicks_url === null ? [] : [line`URL for clicks on buttons: ${made.clicks_url}`]),
  ]);
}

/** Tests channels. Sets the exit code to 1 when a channel did not accept the test notice. */
export async function testChannels(given: readonly string[], options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { channels } = await api.ask('GET', '/owner/channels');
  const chosen = given.length === 0 ? channels : given.map((name) => findNamed(api, 'channel', channels, name));
  if (chosen.length === 0)
    throw new CommandFailed(`There are no channels. Add one: ${api.command('channel add NAME KIND')}`);
  const results = [];
  for (const { id, name, kind } of chosen) {
    const result = await api.ask('POST', `/owner/channels/${id}/test`, {});
    results.push({ id, name, kind, ...result });
    if (!result.ok) process.exitCode = 1;
    if (!options.json)
      printLines([line`${styled('bold', name)} (${kind}): ${result.ok ? 'sent' : 'not sent'}. ${result.detail}`]);
  }
  if (options.json) printJson(results);
}

/** Removes a channel. Throws CommandFailed when it does not exist. */
export async function removeChannel(given: string, options: Options): Promise<void> {
  const api = await openOwnerApi(options);
  const { id, name } = findNamed(api, 'channel', (await api.ask('GET', '/owner/channels')).channels, given);
  const removed = await api.ask('DELETE', `/owner/channels/${id}`);
  printResult(options, removed, () => [line`The channel ${styled('bold', name)} is removed.`]);
}
